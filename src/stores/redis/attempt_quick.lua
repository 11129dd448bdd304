-- attempt, for an exclusive bid: the lock is free, nobody waits, nothing is remembered. All there is on
-- a quiet day, in two commands; what follows would come to the same. See notes.lua for the book.
-- KEYS  key book
-- ARGV  ticket span terms        see attempt.lua; a span of '' is for those that cannot be quick
--
-- A full server refuses SET, but perhaps not what follows.
local set = ARGV[2] ~= '' and redis.pcall('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
if set and set.ok then
    local gen, old = string.sub(ARGV[3], 1, 16), redis.pcall('GETSET', KEYS[2], ARGV[3])
    local is_book = type(old) == 'string'
    if not old or (is_book and string.byte(old, 17) == 104 and string.sub(old, 1, 16) < gen) then
        return gen
    end
    redis.call('DEL', KEYS[1]) -- not so quiet: as it was
    if is_book then
        redis.call('SET', KEYS[2], old)
    end
end
