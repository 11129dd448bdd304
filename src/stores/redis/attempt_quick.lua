-- attempt, for an exclusive bid: the lock is free, nobody waits, nothing is remembered. All there is on
-- a quiet day, in four commands; what follows would come to the same. The letter of the book says what
-- it is, see notes.lua. PEXPIRETIME (Redis 7) is the cheapest way to learn the time.
-- ARGV  ticket span lease terms; see attempt.lua
local old = redis.call('GET', KEYS[2])
if (not old or string.byte(old) == 104) and
   redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
    local now = redis.call('PEXPIRETIME', KEYS[1]) - ARGV[2]
    local gen = math.max(now * 1000, (old and string.sub(old, 2, 17) or 0) + 1)
    redis.call('SET', KEYS[2], string.format(ARGV[2] == ARGV[3] and 'H%016d %d %d ' or 'd%016d %d %d ',
                                             gen, now, now + ARGV[3]) .. ARGV[4])
    return gen
end
