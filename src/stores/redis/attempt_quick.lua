-- attempt, for an exclusive bid: the lock is free, nobody waits, nothing is remembered. All there is on
-- a quiet day, in four commands; what follows would come to the same. See notes.lua for the book.
-- KEYS  key book
-- ARGV  ticket span terms        see attempt.lua; a span of '' is for those that cannot be quick
if ARGV[2] ~= '' then
    local old = redis.call('GET', KEYS[2])
    if not old or string.byte(old, 17) == 104 then
        local time = redis.call('TIME')
        local gen = time[1] .. string.rep('0', 6 - #time[2]) .. time[2]
        if (not old or string.sub(old, 1, 16) < gen) and
           redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
            redis.call('SET', KEYS[2], gen .. ARGV[3] .. ARGV[1])
            return gen
        end
    end
end
