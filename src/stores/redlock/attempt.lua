-- attempt: SET key ticket NX PX ttl, and beside it a note of who asked. Only on this node: whether it is a
-- grant is for the client to count.
-- KEYS  key note tombstone
-- ARGV  ticket ttl note (which begins with ticket and ttl)
-- 1 ours, 0 somebody else's, -1 this ticket was withdrawn
if redis.call('EXISTS', KEYS[3]) == 1 then
    return -1
end
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
    local time = redis.call('TIME')
    redis.call('SET', KEYS[2], time[1] .. ' ' .. time[2] .. ' ' .. ARGV[3], 'PX', ARGV[2])
    return 1
end
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then
    return 0
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1
