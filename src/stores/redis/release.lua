-- A first write that needs no memory: after it a full server allows the others. There is no such key.
redis.call('DEL', 'holdfast.n' .. string.sub(KEYS[2], 11))
read_settings(ARGV[2])
local lock = open(KEYS[1], KEYS[2])
sweep(lock)
local was = end_bid(lock, ticket_and_number(ARGV[1]))
let_in(lock)
return close(lock, was == 'I' and 'done' or 'stale')
