-- purge: forgets locks that nobody has touched for long.
-- KEYS  key book, for each
-- ARGV  how long ago; retain, see read_manners in notes.lua
read_manners(ARGV[2])
redis.call('DEL', 'holdfast.n' .. string.sub(KEYS[2], 11)) -- see release.lua
local count = 0
for i = 1, #KEYS, 2 do
    local lock = open(KEYS[i], KEYS[i + 1])
    local untouched = now - math.max(lock.time, math.floor(lock.gen / 1000)) >= tonumber(ARGV[1])
    sweep(lock)
    let_in(lock)
    lock.due = first_due(lock)
    close(lock)
    if untouched and not lock.due and not lock.holder then
        redis.call('DEL', set_of(lock, 't'))
        count = count + redis.call('DEL', lock.book)
    end
end
return count
