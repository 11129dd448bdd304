-- attempt: SET key ticket NX PX ttl, and a note of who asked under the ticket's own name. The note outlives the
-- key, so that a ticket is let in once: an attempt that comes after its release or its lease gets nothing. Only
-- on this node: whether it is a grant is for the client to count.
-- KEYS  key note
-- ARGV  ticket ttl keep (how long the note stays) note (which begins with ttl and keep)
-- 1 ours, 0 somebody else's, -1 this ticket is over
if not redis.call('GET', KEYS[2]) then
    if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
        return 0
    end
    local time = redis.call('TIME')
    redis.call('SET', KEYS[2], time[1] .. ' ' .. time[2] .. ' ' .. ARGV[4], 'PX', ARGV[3])
    return 1
end
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then
    return -1
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return 1
