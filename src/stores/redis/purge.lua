-- purge: forgets locks that nobody has touched for long.
-- KEYS  key book, for each
-- ARGV  retain
local count = 0
for i = 1, #KEYS, 2 do
    redis.call('HDEL', KEYS[i + 1], '') -- see release.lua
    local lock = open(KEYS[i], KEYS[i + 1], '')
    local untouched = now - lock.time >= tonumber(ARGV[1])
    sweep(lock)
    let_in(lock)
    lock.due = first_due(lock)
    close(lock)
    if untouched and not lock.due and not lock.holder then
        count = count + redis.call('DEL', lock.book)
    end
end
return count
