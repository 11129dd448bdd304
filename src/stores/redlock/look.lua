-- look: what this node knows of some locks. Changes nothing.
-- KEYS  key note, for each
-- its clock, then for each: value, time to live, note
local time = redis.call('TIME')
local answers = {time[1] * 1000 + math.floor(time[2] / 1000)}
for i = 1, #KEYS, 2 do
    local value = redis.pcall('GET', KEYS[i])
    if type(value) == 'table' then
        value = '(' .. redis.call('TYPE', KEYS[i]).ok .. ')'
    end
    answers[#answers + 1] = {value, redis.call('PTTL', KEYS[i]), redis.call('GET', KEYS[i + 1])}
end
return answers
