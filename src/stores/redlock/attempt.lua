-- attempt: SET key ticket NX PX ttl, and a note of who asked under the ticket's own name. The note outlives the
-- key, so that a ticket is let in once: an attempt that comes after its release or its lease gets nothing. Only
-- on this node: whether it is a grant is for the client to count.
-- KEYS  key note
-- ARGV  ticket ttl keep (how long the note stays) round note (which begins with ttl, keep and round)
-- 1 ours, 0 somebody else's, -1 this ticket is over
local note = redis.call('GET', KEYS[2])
if not note then
    if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
        return 0
    end
    local time = redis.call('TIME')
    redis.call('SET', KEYS[2], time[1] .. ' ' .. time[2] .. ' ' .. ARGV[5], 'PX', ARGV[3])
    return 1
end
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then
    return -1
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
-- The clean-up of an earlier round may still come, see release.lua.
local since, round = string.match(note, '^(%d+ %d+ )%d+ %d+ (%d+) ')
if round and tonumber(ARGV[4]) > tonumber(round) then
    redis.call('SET', KEYS[2], since .. ARGV[5], 'PX', ARGV[3])
else
    redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
return 1
