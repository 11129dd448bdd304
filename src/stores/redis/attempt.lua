-- attempt: somebody bids.
-- KEYS  key book
-- ARGV  ticket span terms retain        terms: gen letter ttl delay retire mode limit queue yield\0who ticket
--       for retain see read_settings in notes.lua; it comes again behind, if a trail is kept
read_settings(ARGV[5] or ARGV[4])
local ttl, delay, retire, mode, limit, queue, yield, who =
    string.match(ARGV[3], '^%d*%a(%d+) (%d+) (%d+) (%u) (%d+) (%d) (%d+:%d+)%z(.*)' .. ARGV[1] .. '$')
local lock = open(KEYS[1], KEYS[2])
lock.touched = put_back -- its time has to be given again
if find(lock, ARGV[1]) then
    redis.call('DEL', 'holdfast.n' .. lock.tail) -- only new bids need memory; see release.lua
end
sweep(lock)

local e = find(lock, ARGV[1])
local is_new = not e
if is_new then
    if lock.due and (redis.call('ZCARD', set_of(lock, 'q')) >= QUEUE_MAX or
                     redis.call('ZCARD', set_of(lock, 'r')) >= RETIRED_MAX) then
        return close(lock, 'full')
    elseif mode == 'S' or queue == '1' then
        -- Who may not use these kinds of notes is to be refused before anything is written.
        redis.call('HLEN', set_of(lock, 't'))
        redis.call('ZCARD', set_of(lock, 'q'))
    end
    e = set_who({ticket = ARGV[1], place = 'W', mode = mode, claimed = false, since = now, till = 0, gen = 0,
         ttl = tonumber(ttl), delay = tonumber(delay), retire = tonumber(retire),
         limit = tonumber(limit), span = 0}, who)
elseif e.place == 'W' or e.place == 'I' then
    e.who = set_who({}, who).who
    give(lock, e, lease_of(e))
end

local nobody_waits = let_in(lock, ARGV[1])
if is_new and nobody_waits and fits(lock, e) then
    enter(lock, e, true)
    lock.streak, is_new = 0, false
end
if e.place == 'I' then
    return close(lock, granted(lock, e))
elseif e.place ~= 'W' then
    return close(lock, 'withdrawn')
elseif queue == '0' then
    if not is_new then
        trail(lock, 'D', e, now - e.since, 0, '')
        lift(lock, e)
        e.place = 'gone'
        lay(lock, e)
    end
    return close(lock, busy(lock))
end

if is_new then
    join(lock, e, nobody_waits)
    call_holders(lock)
    give(lock, e, own_lease(e.ttl))
    lock.yield = yield ~= '0:0' and yield or lock.yield
end
return close(lock, queued(lock, e))
