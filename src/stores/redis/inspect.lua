-- inspect: what is noted of some locks, as it is. Changes nothing.
-- KEYS  key book, for each
local function look(key, book)
    local notes, lines, noted = redis.call('HGETALL', book), {}, false
    for i = 1, #notes, 2 do
        if #notes[i] >= 32 then
            lines[notes[i]] = notes[i + 1]
        elseif notes[i] == 'key' then
            noted = notes[i + 1]
        end
    end
    local value = redis.pcall('GET', key)
    if type(value) == 'table' then
        value = '(' .. redis.call('TYPE', key).ok .. ')'
    end
    local found = {value, noted, redis.call('PTTL', key)}
    local function add(ticket)
        found[#found + 1] = ticket
        found[#found + 1] = lines[ticket]
        found[#found + 1] = lines['@' .. ticket] or ''
    end
    local queue, waits = redis.call('ZRANGE', 'holdfast.q' .. string.sub(book, 11), 0, -1), {}
    for _, ticket in ipairs(queue) do
        waits[ticket] = lines[ticket]
    end
    for ticket in pairs(lines) do
        if #ticket == 32 and not waits[ticket] then
            add(ticket)
        end
    end
    for _, ticket in ipairs(queue) do
        if waits[ticket] then
            add(ticket)
        end
    end
    return found
end

local answers = {now}
for i = 1, #KEYS, 2 do
    answers[#answers + 1] = look(KEYS[i], KEYS[i + 1])
end
return answers
