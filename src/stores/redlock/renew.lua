-- renew: restarts the lease of each key that is still ours. A key that is gone is not set again: this node may
-- have given it to somebody else since.
-- KEYS  key note, for each
-- ARGV  ticket, for each
-- for each: its lease in milliseconds, or 0
local answers = {}
for i, ticket in ipairs(ARGV) do
    local key, note = KEYS[2 * i - 1], KEYS[2 * i]
    answers[i] = 0
    if redis.pcall('GET', key) == ticket then
        local ttl, keep = string.match(redis.call('GET', note) or '', '^%d+ %d+ (%d+) (%d+) ')
        if ttl then
            redis.call('PEXPIRE', key, ttl)
            redis.call('PEXPIRE', note, keep)
            answers[i] = tonumber(ttl)
        end
    end
end
return answers
