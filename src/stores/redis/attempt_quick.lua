-- attempt, for an exclusive bid: the lock is free, nobody waits, nothing is remembered. All there is on
-- a quiet day, in three commands; what follows would come to the same. The letter of the book says what
-- it may be, see rules.lua. PEXPIRETIME (Redis 7) is the cheapest way to learn the time.
-- ARGV  ticket span lease letter terms more
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
    local now = redis.call('PEXPIRETIME', KEYS[1]) - ARGV[2]
    local head = ARGV[4] .. now .. '000 '
    local old = redis.call('SET', KEYS[2], head .. now .. ' ' .. now + ARGV[3] .. ' ' .. ARGV[5], 'GET')
    if not old or (string.byte(old) == 104 and string.sub(old, 2, 17) < string.sub(head, 2, 17)) then
        return now
    end
    redis.call('SET', KEYS[2], old)
    redis.call('DEL', KEYS[1])
end
