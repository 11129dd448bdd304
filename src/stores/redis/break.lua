-- break: the lock is taken away from a ticket.
-- KEYS  key book
-- ARGV  ticket [now]        in one word
--       retain                 see read_settings in notes.lua
--       who                    breaks it, for the trail
read_settings(ARGV[2])
redis.call('DEL', 'holdfast.n' .. string.sub(KEYS[2], 11)) -- see release.lua
local lock = open(KEYS[1], KEYS[2])
sweep(lock)

-- A holder that was broken keeps the door closed as long as it may believe that it holds.
local function break_inside(e, at_once)
    local left = (e.till == NEVER or at_once) and 0 or e.till - now
    local span = left + (e.claimed and e.delay or 0)
    if span == 0 then
        leave(lock, e, e.retire)
        return
    end
    lift(lock, e)
    e.place, e.span = 'L', span
    give(lock, e, span)
end

local ticket, at_once = string.sub(ARGV[1], 1, 32), #ARGV[1] > 32
local e = find(lock, ticket)
local found = e and e.place ~= 'R'
local named = not e and lock.foreign and ticket_of_stranger(lock.key) == ticket
if found then
    tell(lock, e, 0)
    if e.place ~= 'L' then
        trail(lock, 'B', e, now - e.since, 0, ARGV[3])
    end
    note_numbers(lock, e)
    if e.place == 'I' then
        break_inside(e, at_once)
    elseif e.place == 'W' or at_once then
        leave(lock, e, e.retire)
    end
elseif not e and (at_once or redis.call('PTTL', KEYS[1]) == -1) then
    found = named
    if named then
        free_key(lock)
        lock.value, lock.foreign = false, false
    end
end
let_in(lock)
local deaf = lock.foreign and named -- whose ever it is, it hears nothing of a break
return close(lock, found and 'done' or deaf and 'deaf' or 'stale')
