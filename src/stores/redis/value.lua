-- value: reads the value, or writes it, in one step with the look at who asks.
-- KEYS  key book
-- ARGV  ticket generation        of the holder; generation 0: anybody may read
--       retain                   see read_settings in notes.lua
--       order bytes              to write; see hf__doorman_apply for what is too old
-- Gives "done" or "lost", and when it was read also generation, order, doubt and bytes; "stale": not written.
read_settings(ARGV[3])
local value = 'holdfast.v' .. string.sub(KEYS[2], 11)
local written, order, doubt, opened, bytes =
    string.match(redis.call('GET', value) or '0 0 0 0 ', '^(%d+) (%d+) (%d) (%d+) (.*)$')
if not written then
    return {'corrupt'} -- somebody else wrote it: nothing is known of it, and it is left as it is
end
if not ARGV[4] then
    redis.call('DEL', 'holdfast.n' .. string.sub(KEYS[2], 11)) -- a full server lets read; see release.lua
end
local lock = open(KEYS[1], KEYS[2])
sweep(lock)

local gen, e = tonumber(ARGV[2]), find(lock, ARGV[1])
local holds = gen > 0 and e and e.place == 'I' and e.gen == gen
local excludes = holds and e.mode == 'X'
local inside = lock.holder and lock.holder.place == 'I' and lock.holder.gen
if opened ~= '0' and tonumber(opened) ~= inside then
    doubt = '1' -- who had opened it vanished
end

local function put(opens)
    if not e.opened then
        e.opened = true
        note_flags(lock, e)
    end
    redis.call('SET', value, string.format('%s %s %s %d ', written, order, doubt, opens) .. bytes)
end

local answer = (holds or gen == 0) and 'done' or 'lost'
if not ARGV[4] then
    if excludes and tonumber(opened) ~= gen then
        put(gen)
    end
    answer = {answer, written, order, doubt, bytes}
elseif not excludes then
    answer = 'lost'
elseif gen < tonumber(written) or gen == tonumber(written) and tonumber(ARGV[4]) < tonumber(order) then
    answer = 'stale'
else
    written, order, doubt, bytes = ARGV[2], ARGV[4], '0', ARGV[5]
    put(gen)
end
let_in(lock)
return close(lock, answer)
