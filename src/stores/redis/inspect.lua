-- inspect: what is noted of some locks, as it is. Changes nothing.
-- KEYS  key book, for each
-- Gives the time and, for each, what the key says, what it must say, its PTTL, and for each ticket the
-- ticket, its line and who bid: holders first, then the queue in its order.
local function look(key, book)
    local lock, value = open(key, book), redis.pcall('GET', key)
    if type(value) == 'table' then
        value = '(' .. redis.call('TYPE', key).ok .. ')'
    end
    local found = {value, lock.noted, redis.call('PTTL', key)}
    local function add(e)
        found[#found + 1], found[#found + 2], found[#found + 3] = e.ticket, line_of(e), e.who
    end

    if lock.holder then
        add(lock.holder)
    end
    local notes = lock.busy and redis.call('HGETALL', set_of(lock, 't')) or {}
    for i = 1, #notes, 2 do
        lock.entries[notes[i]] = parse(notes[i], notes[i + 1])
        if lock.entries[notes[i]].place ~= 'W' then
            add(lock.entries[notes[i]])
        end
    end
    for _, ticket in ipairs(lock.busy and redis.call('ZRANGE', set_of(lock, 'q'), 0, -1) or {}) do
        add(find(lock, ticket))
    end
    return found
end

local answers = {now}
for i = 1, #KEYS, 2 do
    answers[#answers + 1] = look(KEYS[i], KEYS[i + 1])
end
return answers
