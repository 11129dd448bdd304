redis.call('HDEL', KEYS[2], '') -- a first write that needs no memory: a full server, too, lets go
local lock = open(KEYS[1], KEYS[2], ARGV[1])
sweep(lock)
local was = end_bid(lock, ARGV[1], tonumber(ARGV[2]))
let_in(lock)
return close(lock, {was == 'I' and 'done' or 'stale'})
