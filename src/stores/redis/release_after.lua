-- release, with a time: the holder leaves, and the lock opens no earlier than so long after it was let in. Also that of a
-- cached grant whose client has used numbers that belong to it: `used` is the last of them, or 0.
-- KEYS  key book
-- ARGV  ticket retire at_least used        in one word
--       retain                             see read_settings in notes.lua
read_settings(ARGV[2])
redis.call('DEL', 'holdfast.n' .. string.sub(KEYS[2], 11)) -- see release.lua
local lock = open(KEYS[1], KEYS[2])
sweep(lock)

local ticket, retire, at_least, used = string.match(ARGV[1], '^(%x+) (%d+) (%d+) (%d+)$')
local e = find(lock, ticket)
local was = 'I'
at_least, used = tonumber(at_least), tonumber(used)
if e and e.place == 'I' and e.cached and used > e.gen and used <= e.gen + RESERVED then
    lock.gen, lock.touched = math.max(lock.gen, used), true
end
if e and e.place == 'I' and at_least > 0 and e.since + at_least > now then
    if e.opened then
        shut_value(lock, e)
    end
    trail(lock, 'R', e, now - e.since, 0, '')
    lift(lock, e)
    e.place, e.span, e.opened = 'L', at_least, false
    e.till = e.since + e.span
    lock.given = e.since -- later than now, if the clock went back: the next to come looks at it again
    lay(lock, e)
else
    was = end_bid(lock, ticket, tonumber(retire))
end
let_in(lock)
return close(lock, was == 'I' and 'done' or 'stale')
