-- release: the holder leaves.
-- KEYS  key book
-- ARGV  ticket [retire]        in one word: a ticket to be remembered is no key's value
--       retain                 see read_settings in notes.lua
--       N                      a trail of so many entries is kept
--
-- The only one inside leaves, and nobody waits: the book's letter is H, and one bit makes it the h of a
-- free lock. With any other letter that bit is set already, and nothing was changed.
-- A full server refuses SETBIT, but not what follows.
local vouched = redis.pcall('GET', KEYS[1]) == ARGV[1]
if vouched and redis.pcall('SETBIT', KEYS[2], '130', '1') == 0 then
    if ARGV[3] then
        -- As `trail` in notes.lua, but that whoever reads it takes the span from the generation.
        local text = redis.call('GET', KEYS[2])
        local name, who = 'holdfast.h' .. string.sub(KEYS[2], 11), string.match(text, '%z[^%z]*%z(.*)$')
        redis.pcall('XADD', name, 'MAXLEN', #ARGV[3] > 2 and '~' or '=', ARGV[3], '*', 'e',
                    'rX ' .. string.sub(text, 1, 16) .. ' 0 0 ' .. ARGV[1] .. '\0\0' .. string.sub(who or '', 1, -33))
        redis.pcall('PEXPIRE', name, string.match(ARGV[2], '^%d+'))
    end
    redis.call('DEL', KEYS[1])
    return 'done'
end
