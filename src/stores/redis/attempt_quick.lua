-- attempt: somebody bids.
-- KEYS  key book
-- ARGV  ticket mode limit ttl delay retire queue who yield yield_for
--
-- An exclusive bid for a lock that nobody has and nobody waits for: all there is on a quiet day. The
-- rules below would come to the same; this is before them because even defining them takes time.
if ARGV[2] == 'X' then
    local notes = redis.call('HMGET', KEYS[2], 'gen', 'time', 'due', 'key', ARGV[1])
    if not (notes[3] or notes[4] or notes[5]) and now >= tonumber(notes[2] or 0) then
        local ttl = tonumber(ARGV[4])
        local claimed = ttl > 0
        local lease = claimed and ttl or 5000
        local span = claimed and ttl + ARGV[5] or lease
        if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', span) then
            local gen = math.max((notes[1] or 0) + 1, us)
            local line = string.format('IX%s %d %d %d %d %s %s', claimed and 'Y' or 'N', now, now + lease,
                                       gen, ttl, ARGV[5], ARGV[6])
            redis.call('HSET', KEYS[2], 'gen', gen, 'time', now, 'key', ARGV[1],
                       ARGV[1], line, '@' .. ARGV[1], ARGV[8])
            return {'granted', gen, lease, claimed and 1 or 0}
        end
    end
end
