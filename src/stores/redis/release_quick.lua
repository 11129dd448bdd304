-- release: the holder leaves.
-- KEYS  key book
-- ARGV  ticket retire
--
-- The only one inside leaves, and nobody waits: see attempt_quick.lua.
if ARGV[2] == '0' then
    local notes = redis.call('HMGET', KEYS[2], 'time', 'due', 'key', ARGV[1])
    if notes[3] == ARGV[1] and not notes[2] and notes[4] and now >= tonumber(notes[1]) then
        local till = string.match(notes[4], '^I%u%u %d+ (%d+)')
        if till and now < tonumber(till) and redis.pcall('GET', KEYS[1]) == ARGV[1] then
            redis.call('DEL', KEYS[1])
            redis.call('HDEL', KEYS[2], 'key', ARGV[1], '@' .. ARGV[1])
            return {'done'}
        end
    end
end
