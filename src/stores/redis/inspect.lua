-- inspect: what is noted of some locks, as it is. Changes nothing.
-- KEYS  key book, for each
-- Gives the time and, for each, what the key says, what it must say, its PTTL, and for each ticket the
-- ticket, its line and who bid: holders first, then the queue in its order.
local function look(key, book)
    local tail = string.sub(book, 11)
    local value, text = redis.pcall('GET', key), redis.call('GET', book) or ''
    if type(value) == 'table' then
        value = '(' .. redis.call('TYPE', key).ok .. ')'
    end
    local found = {value, false, redis.call('PTTL', key)}
    local function add(ticket, line, who)
        found[#found + 1], found[#found + 2], found[#found + 3] = ticket, line, who
    end

    local letter = string.sub(text, 1, 1)
    if letter == 'H' or letter == 'd' then
        local gen, since, till, claimed, ticket, terms, who =
            string.match(text, '^.(%d+) (%d+) (%d+) (%u) (%x+) (%d+ %d+ %d+)[^%z]*%z(.*)$')
        found[2] = ticket
        add(ticket, string.format('IX%s %s %s %s %s', claimed, since, till, gen, terms), who)
    elseif letter == 'b' then
        found[2] = string.match(text, '^b%d+ %d+ %d+ (%S+)')
        local notes, lines = redis.call('HGETALL', 'holdfast.t' .. tail), {}
        for i = 1, #notes, 2 do
            lines[notes[i]] = notes[i + 1]
        end
        local queue, waits = redis.call('ZRANGE', 'holdfast.q' .. tail, 0, -1), {}
        for _, ticket in ipairs(queue) do
            waits[ticket] = true
        end
        for ticket, line in pairs(lines) do
            if #ticket == 32 and not waits[ticket] then
                add(ticket, line, lines['@' .. ticket] or '')
            end
        end
        for _, ticket in ipairs(queue) do
            add(ticket, lines[ticket] or '', lines['@' .. ticket] or '')
        end
    end
    return found
end

local answers = {now}
for i = 1, #KEYS, 2 do
    answers[#answers + 1] = look(KEYS[i], KEYS[i + 1])
end
return answers
