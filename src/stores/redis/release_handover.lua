-- release, from one exclusive holder to the next: no lease is over, nothing is due, and the first in the queue is
-- exclusive as well, and the value was not opened. What the rules below would do, in nine commands. ZPOPMIN comes first because a full server
-- allows it, and after it the others.
local last, since, due, rest, keep, till
if vouched and not ARGV[3] then
    last, since, due, rest, keep, till =
        string.match(redis.call('GET', KEYS[2]) or '',
                     '^(%d+)b(%d+) (%d+)( (%d+) %d+ %d+ 0 0:0 )%x+ IX%u %d+ (%d+) %d+ %d+ %d+ %d+%z[^o%z]*%z')
end
if till then
    local time, tail = redis.call('TIME'), string.sub(KEYS[2], 11)
    local gen = time[1] .. string.rep('0', 6 - #time[2]) .. time[2]
    local now = string.sub(gen, 1, 13)
    local at = tonumber(now)
    local undisturbed = at >= tonumber(since) and at < tonumber(due) and at < tonumber(till) and
        keep ~= '9007199254740991' -- notes without an end
    local first = undisturbed and redis.call('ZPOPMIN', 'holdfast.q' .. tail) or {}
    local head = first[1]
    local terms, ttl, channel = string.match(head and redis.call('HGET', 'holdfast.t' .. tail, head) or '',
                                             '^WXN %d+ %d+ 0 ((%d+) %d+ %d+%z(%x*).*)$')
    if terms then
        local lease = ttl == '0' and '5000' or tonumber(ttl) > 10000 and '10000' or ttl -- provisional
        gen = last < gen and gen or string.format('%016d', last + 1)
        redis.call('HDEL', 'holdfast.t' .. tail, head)
        redis.call('ZREM', 'holdfast.w' .. tail, head)
        redis.call('SET', KEYS[1], head, 'PX', lease)
        redis.call('SET', KEYS[2], gen .. 'b' .. now .. ' ' .. due .. rest .. head .. ' IXN ' .. now .. ' ' ..
                   at + lease .. ' ' .. gen .. ' ' .. terms, 'PX', keep - at + lease +
                   string.match(ARGV[2], '^%d+'))
        if channel ~= '' then
            redis.pcall('PUBLISH', 'holdfast.wake:' .. channel, head .. ' ' .. gen)
        end
        return 'done'
    elseif head then
        redis.call('ZADD', 'holdfast.q' .. tail, first[2], head)
    end
end
