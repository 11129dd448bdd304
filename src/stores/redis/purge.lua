-- purge: forgets locks that nobody has touched for long, but for those that have a value.
-- KEYS  key book, for each
-- ARGV  how long ago; retain, see read_settings in notes.lua
read_settings(ARGV[2])
redis.call('DEL', 'holdfast.n' .. string.sub(KEYS[2], 11)) -- see release.lua
local count = 0
for i = 1, #KEYS, 2 do
    local lock = open(KEYS[i], KEYS[i + 1])
    local untouched = now - math.max(lock.time, math.floor(lock.gen / 1000)) >= tonumber(ARGV[1])
    sweep(lock)
    let_in(lock)
    lock.due = first_due(lock)
    close(lock)
    local idle = untouched and not lock.due and not lock.holder
    local value = idle and redis.pcall('GET', set_of(lock, 'v'))
    if idle and not (type(value) == 'string' and string.match(value, '^%d+ %d+ %d %d+ .')) then
        redis.call('DEL', set_of(lock, 't'))
        count = count + math.max(redis.call('DEL', lock.book), redis.call('DEL', set_of(lock, 'v')))
    end
end
return count
