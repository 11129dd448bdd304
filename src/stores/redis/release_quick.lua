-- release: the holder leaves.
-- KEYS  key book
-- ARGV  ticket [retire]        in one word: a ticket to be remembered is no key's value
--       retain                 see read_settings in notes.lua
--
-- The only one inside leaves, and nobody waits: the book's letter is H, and one bit makes it the h of a
-- free lock. With any other letter that bit is set already, and nothing was changed.
-- A full server refuses SETBIT, but not what follows.
local vouched = redis.pcall('GET', KEYS[1]) == ARGV[1]
if vouched and redis.pcall('SETBIT', KEYS[2], '130', '1') == 0 then
    redis.call('DEL', KEYS[1])
    return 'done'
end
