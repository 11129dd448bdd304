-- inspect: what is noted of some locks, as it is. Changes nothing.
-- KEYS  key book, for each
-- Gives the time and, for each, what the key says (or the beginning of it), what it must say, its PTTL, by which
-- ticket a stranger who holds it is broken, and for each ticket of ours the ticket, its line and who bid: holders
-- first, then the queue in its order. When that is a lot already, the rest of the locks is left for the next call.
local SHOWN, A_LOT = 100, 2000000

local function look(key, book)
    local lock, value = open(key, book), redis.pcall('GET', key)
    if type(value) == 'table' then
        value = '(' .. redis.call('TYPE', key).ok .. ')'
    end
    local found = {value and string.sub(value, 1, SHOWN), lock.noted, redis.call('PTTL', key),
                   value and value ~= lock.noted and ticket_of_stranger(key)}
    local size = 0
    local function add(e)
        found[#found + 1], found[#found + 2], found[#found + 3] = e.ticket, line_of(e), who_of(e)
        size = size + 200 + #e.who
    end

    if lock.holder then
        add(lock.holder)
    end
    local notes = lock.busy and redis.call('HGETALL', set_of(lock, 't')) or {}
    for i = 1, #notes, 2 do
        local e = parse(notes[i], notes[i + 1])
        lock.entries[notes[i]] = e or false
        if e and e.place ~= 'W' then
            add(e)
        end
    end
    for _, ticket in ipairs(lock.busy and redis.call('ZRANGE', set_of(lock, 'q'), 0, -1) or {}) do
        if find(lock, ticket) then
            add(find(lock, ticket))
        end
    end
    return found, size
end

local answers, size = {now}, 0
for i = 1, #KEYS, 2 do
    local found, more = look(KEYS[i], KEYS[i + 1])
    answers[#answers + 1] = found
    size = size + 200 + more
    if size > A_LOT then
        break
    end
end
return answers
