-- withdraw: a bidder gives up, whatever became of its bid.
-- KEYS  key book
-- ARGV  ticket retire
redis.call('HDEL', KEYS[2], '') -- see release.lua
local lock = open(KEYS[1], KEYS[2], ARGV[1])
sweep(lock)

local e, retire = find(lock, ARGV[1]), tonumber(ARGV[2])
local had = e and (e.place == 'I' or e.place == 'W')
if had then
    leave(lock, e, retire)
elseif e and e.place == 'R' then
    if e.till < now + retire then -- its last attempt may be younger than the tombstone
        e.span = retire
        give(lock, e, retire)
    end
elseif not e then
    had = drop_unknown(lock, ARGV[1])
    if retire > 0 then -- its attempt may still be on the way
        lay(lock, {ticket = ARGV[1], place = 'R', mode = 'X', claimed = false, since = now,
                   till = now + retire, gen = 0, ttl = 0, delay = 0, retire = retire, limit = 0,
                   span = retire})
    end
end
let_in(lock)
return close(lock, {had and 'done' or 'stale'})
