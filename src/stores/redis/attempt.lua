local lock = open(KEYS[1], KEYS[2], ARGV[1])
sweep(lock)

local e = find(lock, ARGV[1])
local is_new = not e
if is_new then
    if lock.due and (redis.call('ZCARD', set_of(lock, 'q')) >= QUEUE_MAX or
                     redis.call('ZCARD', set_of(lock, 'r')) >= RETIRED_MAX) then
        return close(lock, {'full'})
    end
    e = {ticket = ARGV[1], place = 'W', mode = ARGV[2], claimed = false, since = now, till = 0, gen = 0,
         ttl = tonumber(ARGV[4]), delay = tonumber(ARGV[5]), retire = tonumber(ARGV[6]),
         limit = ARGV[2] == 'S' and tonumber(ARGV[3]) or 0, span = 0}
elseif e.place == 'W' or e.place == 'I' then
    give(lock, e, lease_of(e))
    note(lock, '@' .. e.ticket, ARGV[8])
end

local nobody_waits = let_in(lock, ARGV[1])
if is_new and nobody_waits and fits(lock, e) then
    note(lock, '@' .. e.ticket, ARGV[8])
    enter(lock, e, true)
    lock.streak = 0
    is_new = false
end
if e.place == 'I' then
    return close(lock, granted(e))
elseif e.place ~= 'W' then
    return close(lock, {'withdrawn'})
elseif ARGV[7] == '0' then
    if not is_new then
        lift(lock, e)
        e.place = 'gone'
        lay(lock, e)
    end
    return close(lock, {'busy'})
end

if is_new then
    lock.seq = lock.seq + 1
    redis.call('ZADD', set_of(lock, 'q'), lock.seq, e.ticket)
    give(lock, e, own_lease(e.ttl))
    note(lock, '@' .. e.ticket, ARGV[8])
    note(lock, 'seq', lock.seq)
    if ARGV[9] ~= '0' then
        note(lock, 'yield', ARGV[9] .. ' ' .. ARGV[10])
    end
end
return close(lock, queued(lock, e))
