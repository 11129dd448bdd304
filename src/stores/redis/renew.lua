-- renew: signs of life, many in one call.
-- KEYS  key book, for each
-- ARGV  ticket generation, for each; then retain, see read_settings in notes.lua
read_settings(ARGV[#KEYS + 1])
local function renew(key, book, ticket, gen)
    local lock = open(key, book)
    sweep(lock)

    local e = find(lock, ticket)
    local inside = e and e.place == 'I'
    local names_it = inside and gen == e.gen
    if names_it then
        e.claimed = true
        give(lock, e, lease_of(e))
    elseif (inside and gen == 0) or (e and e.place == 'W') then
        give(lock, e, lease_of(e))
    end
    let_in(lock)
    if e and e.place == 'W' then
        return close(lock, queued(lock, e, true))
    elseif (names_it or gen == 0) and e and e.place == 'I' then
        return close(lock, granted(lock, e))
    end
    return close(lock, 'lost')
end

redis.call('DEL', 'holdfast.n' .. string.sub(KEYS[2], 11)) -- see release.lua
local answers = {}
for i = 1, #KEYS, 2 do
    local well, answer = pcall(renew, KEYS[i], KEYS[i + 1], ARGV[i], tonumber(ARGV[i + 1]))
    local fault = type(answer) == 'table' and answer.err or answer
    if well then
        answers[#answers + 1] = answer
    elseif string.find(fault, 'WRONGTYPE', 1, true) then
        answers[#answers + 1] = 'lost' -- somebody has overwritten the notes; the others live on
    else
        error(answer)
    end
end
return answers
