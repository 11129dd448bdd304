redis.call('HDEL', KEYS[2], '') -- a first write that needs no memory: a full server, too, lets go
local lock = open(KEYS[1], KEYS[2], ARGV[1])
sweep(lock)

local e = find(lock, ARGV[1])
local inside = e and e.place == 'I'
if inside or (e and e.place == 'W') then
    leave(lock, e, tonumber(ARGV[2]))
elseif not e then
    inside = drop_unknown(lock, ARGV[1])
end
let_in(lock)
return close(lock, {inside and 'done' or 'stale'})
