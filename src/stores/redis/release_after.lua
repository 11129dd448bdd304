-- release, with a time: the holder leaves, and the lock opens no earlier than so long after it was let in.
-- KEYS  key book
-- ARGV  ticket retire at_least        in one word
--       retain                        see read_settings in notes.lua
read_settings(ARGV[2])
redis.call('DEL', 'holdfast.n' .. string.sub(KEYS[2], 11)) -- see release.lua
local lock = open(KEYS[1], KEYS[2])
sweep(lock)

local ticket, retire, at_least = string.match(ARGV[1], '^(%x+) (%d+) (%d+)$')
local e = find(lock, ticket)
local was = 'I'
if e and e.place == 'I' and e.since + at_least > now then
    if e.opened then
        shut_value(lock, e)
    end
    trail(lock, 'R', e, now - e.since, 0, '')
    lift(lock, e)
    e.place, e.span, e.opened = 'L', tonumber(at_least), false
    e.till = e.since + e.span
    lock.given = e.since -- later than now, if the clock went back: the next to come looks at it again
    lay(lock, e)
else
    was = end_bid(lock, ticket, tonumber(retire))
end
let_in(lock)
return close(lock, was == 'I' and 'done' or 'stale')
