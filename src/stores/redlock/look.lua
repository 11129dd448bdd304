-- look: what this node knows of some locks. Changes nothing.
-- KEYS  key, for each
-- ARGV  what a note's name begins with; the ticket follows
-- its clock, then for each: value, time to live, note
local time = redis.call('TIME')
local answers = {time[1] * 1000 + math.floor(time[2] / 1000)}
for i, key in ipairs(KEYS) do
    local value, note = redis.pcall('GET', key), false
    if type(value) == 'table' then
        value = '(' .. redis.call('TYPE', key).ok .. ')'
    elseif value and #value == 32 then
        note = redis.call('GET', ARGV[1] .. value)
    end
    answers[1 + i] = {value, redis.call('PTTL', key), note}
end
return answers
