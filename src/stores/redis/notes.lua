-- What is kept of a lock. `X` stands for {key}, see names.c:
--
--   key               the record everybody sees: a ticket, or a marker while readers are inside
--   holdfast.b:X      the book, a string whose first letter says what it is:
--                       h gen ...                             free
--                       H gen since till terms                held by one, exclusively; see terms_of
--                       d gen since till terms                likewise, with a lock-delay
--                       b gen time due key seq streak gap yield      busy: the rest is in the sets
--   holdfast.t:X      busy: for each ticket its line, and who bid under @ticket
--   holdfast.q:X      who waits, by the order of joining
--   holdfast.w:X      who waits, by when a sign of life is due
--   holdfast.i:X      shared holders, by the end of their lease or linger
--   holdfast.l:X      those of them with a limit, by limit
--   holdfast.e:X      those of them with a lock-delay, by its end
--   holdfast.r:X      tickets that are retired, by when they are forgotten
--
-- Of a busy book: gen is the last generation given, time when a span was last given, due the moment
-- before which nothing in the sets is over (0: they are empty), key what the key must say (0: nothing),
-- seq the number of who joined last; for the others see may_enter in rules.lua.
--
-- The key is the truth, the rest are notes: holders that the key does not vouch for are no holders.
--
-- A line is: place mode claimed, since, till, generation, ttl, delay, retire [, limit, span].
-- Places: W waiting, I inside, L lingering, R retired; modes X and S; claimed Y or N.
local NEVER = 9007199254740991
local QUEUE_MAX, RETIRED_MAX = 10000, 10000

local function own_lease(ttl)
    return ttl == 0 and 5000 or math.min(math.max(ttl, 1000), 10000)
end

local function provisional_lease(ttl)
    return ttl == 0 and 5000 or math.min(ttl, own_lease(ttl))
end

local function parse(ticket, line)
    local place, mode, claimed, since, till, gen, ttl, delay, retire, limit, span =
        string.match(line, '^(%u)(%u)(%u) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) ?(%d*) ?(%d*)$')
    return {ticket = ticket, place = place, mode = mode, claimed = claimed == 'Y',
            since = tonumber(since), till = tonumber(till), gen = tonumber(gen), ttl = tonumber(ttl),
            delay = tonumber(delay), retire = tonumber(retire), limit = tonumber(limit) or 0,
            span = tonumber(span) or 0}
end

local function format(e)
    local line = string.format('%s%s%s %d %d %d %d %d %d', e.place, e.mode, e.claimed and 'Y' or 'N',
                               e.since, e.till, e.gen, e.ttl, e.delay, e.retire)
    if e.place == 'L' or e.place == 'R' then
        return string.format('%s %d %d', line, e.limit, e.span)
    end
    return e.limit > 0 and string.format('%s %d', line, e.limit) or line
end

-- The span that was last given: `till` is not further away than this, or the clock went back.
local function lease_of(e)
    if e.place == 'W' then
        return own_lease(e.ttl)
    elseif e.place ~= 'I' then
        return e.span
    elseif not e.claimed then
        return provisional_lease(e.ttl)
    end
    return e.ttl == 0 and NEVER or e.ttl
end

local function set_of(lock, kind)
    return 'holdfast.' .. kind .. lock.tail
end

-- What a book of one exclusive holder says after its times: "claimed ticket ttl delay retire\0who". More
-- before the NUL does no harm: the quick way puts the terms there as they were bid.
local function terms_of(e, who)
    return string.format('%s %s %d %d %d', e.claimed and 'Y' or 'N', e.ticket, e.ttl, e.delay,
                         e.retire) .. '\0' .. who
end

local function read_quiet(lock, book)
    local gen, since, till, claimed, ticket, ttl, delay, retire, who =
        string.match(book, '^.(%d+) (%d+) (%d+) (%u) (%x+) (%d+) (%d+) (%d+)[^%z]*%z(.*)$')
    local e = parse(ticket, string.format('IX%s %s %s %s %s %s %s', claimed, since, till, gen, ttl, delay,
                                          retire))
    lock.holder, lock.noted, lock.alone, lock.who = e, ticket, ticket, who
    lock.entries[ticket] = e
    lock.time = e.till == NEVER and e.since or e.till - lease_of(e)
end

local function read_busy(lock, book)
    local time, due, noted, seq, streak, gap, yield =
        string.match(book, '^b%d+ (%d+) (%d+) (%S+) (%d+) (%d+) (%d+) (%S+)$')
    lock.time, lock.seq, lock.streak, lock.gap = tonumber(time), tonumber(seq), tonumber(streak),
        tonumber(gap)
    lock.due = due ~= '0' and tonumber(due) or nil
    lock.noted = noted ~= '0' and noted
    lock.yield = yield
    lock.busy = true
end

local function open(key, book)
    local lock = {key = key, book = book, tail = string.sub(book, 11), gen = 0, time = 0, seq = 0,
                  streak = 0, gap = 0, yield = '0:0', noted = false, entries = {}, fields = {}, crowd = 0}
    local text = redis.call('GET', book)
    local letter = text and string.sub(text, 1, 1)
    lock.gen = text and tonumber(string.match(text, '^%a(%d+)')) or 0
    if letter == 'H' or letter == 'd' then
        read_quiet(lock, text)
    elseif letter == 'b' then
        read_busy(lock, text)
    end
    return lock
end

local function find(lock, ticket)
    local e = lock.entries[ticket]
    if e == nil then
        local line = lock.busy and redis.call('HGET', set_of(lock, 't'), ticket)
        e = line and parse(ticket, line)
        lock.entries[ticket] = e or false
    end
    return e
end

-- Changes of holdfast.t are collected, and written by close().
local function note(lock, field, value)
    lock.fields[field] = value
    lock.touched = true
end

local function erase(lock, field)
    note(lock, field, false)
end

local function who_of(lock, e)
    if lock.fields['@' .. e.ticket] then
        return lock.fields['@' .. e.ticket]
    elseif lock.alone == e.ticket then
        return lock.who
    end
    return lock.busy and redis.call('HGET', set_of(lock, 't'), '@' .. e.ticket) or '-'
end

-- Out of the sets its place keeps it in.
local function lift(lock, e)
    if e.place == 'W' then
        redis.call('ZREM', set_of(lock, 'q'), e.ticket)
        redis.call('ZREM', set_of(lock, 'w'), e.ticket)
    elseif e.place == 'R' then
        redis.call('ZREM', set_of(lock, 'r'), e.ticket)
    elseif e.mode == 'X' then
        lock.holder = nil
        lock.moved = true
    else
        lock.crowd = lock.crowd - redis.call('ZREM', set_of(lock, 'i'), e.ticket)
        lock.moved = true
        if e.limit > 0 then
            redis.call('ZREM', set_of(lock, 'l'), e.ticket)
        end
        if e.delay > 0 then
            redis.call('ZREM', set_of(lock, 'e'), e.ticket)
        end
    end
end

-- Into the sets of its place, and into the book.
local function lay(lock, e)
    if e.place == 'gone' then
        lock.entries[e.ticket] = false
        erase(lock, e.ticket)
        erase(lock, '@' .. e.ticket)
        return
    end
    lock.entries[e.ticket] = e
    note(lock, e.ticket, format(e))
    if e.place == 'R' then
        redis.call('ZADD', set_of(lock, 'r'), e.till, e.ticket)
        erase(lock, '@' .. e.ticket)
    elseif e.place == 'W' then
        redis.call('ZADD', set_of(lock, 'w'), e.till, e.ticket)
    elseif e.mode == 'X' then
        lock.holder = e
        lock.moved = true
        return
    else
        lock.crowd = lock.crowd + redis.call('ZADD', set_of(lock, 'i'), e.till, e.ticket)
        lock.moved = true
        if e.limit > 0 then
            redis.call('ZADD', set_of(lock, 'l'), e.limit, e.ticket)
        end
        if e.delay > 0 and e.claimed and e.place == 'I' then
            redis.call('ZADD', set_of(lock, 'e'), math.min(e.till + e.delay, NEVER), e.ticket)
        end
    end
    lock.due = math.min(lock.due or NEVER, e.till)
end

-- What the key must say and for how long, if those inside have changed.
local function settle_key(lock)
    local says, till
    if lock.holder then
        local e = lock.holder
        says = e.ticket
        till = e.till + (e.place == 'I' and e.claimed and e.delay or 0)
    elseif lock.crowd > 0 then
        local last = redis.call('ZRANGE', set_of(lock, 'i'), -1, -1, 'WITHSCORES')
        local delayed = redis.call('ZRANGE', set_of(lock, 'e'), -1, -1, 'WITHSCORES')
        says = lock.noted and #lock.noted ~= 32 and lock.noted or string.format('shared:%d', lock.gen)
        till = math.max(tonumber(last[2]), tonumber(delayed[2] or 0))
    end
    local ours = lock.value and not lock.foreign
    lock.noted = says or false
    if not says then
        if ours then
            redis.call('DEL', lock.key)
        end
        return
    end
    local span = till - now
    if says == lock.value and till >= NEVER then
        redis.call('PERSIST', lock.key)
    elseif says == lock.value then
        redis.call('PEXPIRE', lock.key, span)
    elseif till >= NEVER then
        redis.call('SET', lock.key, says)
    else
        redis.call('SET', lock.key, says, 'PX', span)
    end
end

local function write_tickets(lock)
    local set, del = {}, {}
    for field, value in pairs(lock.fields) do
        if value then
            set[#set + 1] = field
            set[#set + 1] = value
        else
            del[#del + 1] = field
        end
    end
    for from = 1, #del, 1000 do
        redis.call('HDEL', set_of(lock, 't'), unpack(del, from, math.min(from + 999, #del)))
    end
    for from = 1, #set, 1000 do
        redis.call('HSET', set_of(lock, 't'), unpack(set, from, math.min(from + 999, #set)))
    end
end

local function book_of(lock)
    local e = lock.holder
    if lock.due or lock.gap > 0 or (e and e.place ~= 'I') then
        return string.format('b%016d %d %d %s %d %d %d %s', lock.gen, now, lock.due or 0,
                             lock.noted or '0', lock.seq, lock.streak, lock.gap, lock.yield), true
    elseif e then
        return string.format('%s%016d %d %d ', e.delay > 0 and 'd' or 'H', e.gen, e.since, e.till) ..
                   terms_of(e, who_of(lock, e)), false
    end
    return string.format('h%016d', lock.gen), false
end

-- Writes what has changed, and passes the answer on.
local function close(lock, answer)
    if lock.moved then
        settle_key(lock)
    end
    if not lock.touched then
        return answer
    end
    local book, busy = book_of(lock)
    if busy then
        if lock.holder and lock.holder.ticket == lock.alone then -- it was in the book only
            lock.fields[lock.alone] = format(lock.holder)
            lock.fields['@' .. lock.alone] = who_of(lock, lock.holder)
        end
        write_tickets(lock)
    elseif lock.busy then
        redis.call('DEL', set_of(lock, 't'))
    end
    redis.call('SET', lock.book, book)
    return answer
end
