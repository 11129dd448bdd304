-- release: deletes the key if it is still ours. With a time, the ticket is remembered for so long: an attempt
-- of it may still be on its way to this node.
-- KEYS  key note tombstone
-- ARGV  ticket retire
-- 1 it was ours, 0 it was not
if ARGV[2] ~= '0' then
    redis.call('SET', KEYS[3], '', 'PX', ARGV[2])
end
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then
    return 0
end
redis.call('DEL', KEYS[1], KEYS[2])
return 1
