-- look: what this node knows of some locks. Changes nothing.
-- KEYS  key, for each
-- ARGV  what a note's name begins with; the ticket follows
-- its clock, then for each: value (or the beginning of it), time to live, note, and a digest of the value if it is
-- no ticket
local time = redis.call('TIME')
local answers = {time[1] * 1000 + math.floor(time[2] / 1000)}
for i, key in ipairs(KEYS) do
    local value, note, digest = redis.pcall('GET', key), false, false
    if type(value) == 'table' then
        value = '(' .. redis.call('TYPE', key).ok .. ')'
        digest = string.sub(redis.sha1hex(redis.call('DUMP', key)), 1, 32)
    elseif value and #value == 32 and not string.find(value, '[^%da-f]') then
        note = redis.call('GET', ARGV[1] .. value)
    elseif value then
        digest = string.sub(redis.sha1hex(value), 1, 32)
    end
    answers[1 + i] = {value and string.sub(value, 1, 100), redis.call('PTTL', key), note, digest}
end
return answers
