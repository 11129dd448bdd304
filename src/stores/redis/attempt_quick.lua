-- attempt, for an exclusive bid: the lock is free, nobody waits, nothing is remembered. All there is on
-- a quiet day, in two commands; what follows would come to the same. See notes.lua for the book.
-- KEYS  key book
-- ARGV  ticket span terms retain        see attempt.lua; a span of '' is for those that cannot be quick
--
-- The generation in the terms is the server's time as far as the client knows it. It is never ahead, and may be
-- behind by any amount (clock.c). If there is no book it is not good enough: only the server's own clock is above
-- all that was given before.
-- A full server refuses the first SET, but perhaps not what follows. One before 6.2 knows no GET here.
local put_back
local set = ARGV[2] ~= '' and redis.pcall('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
if set and set.ok then
    local keep = ARGV[2] + ARGV[4]
    local gen, old = string.sub(ARGV[3], 1, 16), redis.pcall('SET', KEYS[2], ARGV[3], 'PX', keep, 'GET')
    local is_book = type(old) == 'string'
    local last = is_book and string.byte(old, 17) == 104 and string.sub(old, 1, 16)
    if last and last < gen then
        return gen
    elseif last or not old then
        local time = not last and redis.call('TIME')
        gen = last and string.format('%016d', last + 1) or time[1] .. string.rep('0', 6 - #time[2]) .. time[2]
        redis.call('SET', KEYS[2], gen .. string.sub(ARGV[3], 17), 'PX', keep)
        return gen
    end
    redis.call('DEL', KEYS[1]) -- not so quiet: as it was
    if is_book then
        redis.call('SET', KEYS[2], old)
        put_back = true
    end
end
