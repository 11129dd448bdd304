-- withdraw: a bidder gives up, whatever became of its bid.
-- KEYS  key book
-- ARGV  ticket [retire]        in one word
--       retain                 see read_settings in notes.lua
read_settings(ARGV[2])
redis.call('DEL', 'holdfast.n' .. string.sub(KEYS[2], 11)) -- see release.lua
local lock = open(KEYS[1], KEYS[2])
sweep(lock)
local ticket, retire = ticket_and_number(ARGV[1])
local was = end_bid(lock, ticket, retire, true)
let_in(lock)
return close(lock, (was == 'gone' or was == 'R') and 'stale' or 'done')
