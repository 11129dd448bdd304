-- The rules of src/doorman/doorman.c, over these structures. `X` stands for {key}, see names.c:
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
-- seq the number of who joined last; for the others see may_enter.
--
-- The key is the truth, the rest are notes: holders that the key does not vouch for are no holders.
-- No operation looks at more than the entries it is about, those that are over and those it lets in.
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

-- What a book of one exclusive holder says after its times: "claimed ticket ttl delay retire\0who".
local function terms_of(e, who)
    return string.format('%s %s %d %d %d', e.claimed and 'Y' or 'N', e.ticket, e.ttl, e.delay,
                         e.retire) .. '\0' .. who
end

local function read_quiet(lock, book)
    local gen, since, till, claimed, ticket, ttl, delay, retire, who =
        string.match(book, '^.(%d+) (%d+) (%d+) (%u) (%x+) (%d+) (%d+) (%d+)%z(.*)$')
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

local function give(lock, e, span)
    e.till = span == NEVER and NEVER or now + span
    lay(lock, e)
end

-- Where an entry goes that is over: remembered as retired, or forgotten.
local function retired(e, retire, from)
    e.place = retire > 0 and 'R' or 'gone'
    e.till, e.span = from + retire, retire
end

local function leave(lock, e, retire)
    lift(lock, e)
    retired(e, retire, now)
    lay(lock, e)
end

-- A holder whose time is over. One that knew it held keeps the door closed for its lock-delay.
local function expire(lock, e)
    lift(lock, e)
    while e.place ~= 'gone' and e.till <= now do
        if e.place == 'I' and e.claimed and e.delay > 0 then
            e.place, e.till, e.span = 'L', e.till + e.delay, e.delay
        elseif e.place == 'R' then
            e.place = 'gone'
        else
            retired(e, e.retire, e.till)
        end
    end
    lay(lock, e)
end

local function over(lock, kind, count)
    return redis.call('ZRANGEBYSCORE', set_of(lock, kind), '-inf', now, 'LIMIT', 0, count)
end

-- Waiters without a sign of life, and tickets that were remembered long enough.
local function forget(lock, kind)
    local tickets = over(lock, kind, 1000)
    while #tickets > 0 do
        for _, ticket in ipairs(tickets) do
            lock.entries[ticket] = false
            erase(lock, ticket)
            erase(lock, '@' .. ticket)
        end
        redis.call('ZREM', set_of(lock, kind), unpack(tickets))
        if kind == 'w' then
            redis.call('ZREM', set_of(lock, 'q'), unpack(tickets))
        end
        tickets = over(lock, kind, 1000)
    end
end

local function first_due(lock)
    local due
    for _, kind in ipairs({'w', 'i', 'r'}) do
        local first = redis.call('ZRANGE', set_of(lock, kind), 0, 0, 'WITHSCORES')
        if first[2] then
            due = math.min(due or NEVER, tonumber(first[2]))
        end
    end
    return due
end

-- The server's clock went back: nothing lasts longer from now than it was given.
local function cut(lock)
    local tickets = redis.call('HKEYS', set_of(lock, 't'))
    tickets[#tickets + 1] = lock.alone
    for _, ticket in ipairs(tickets) do
        if #ticket == 32 then
            local e = find(lock, ticket)
            if e.till ~= NEVER and e.till - now > lease_of(e) then
                give(lock, e, lease_of(e))
            end
        end
    end
    lock.due = first_due(lock)
    lock.touched = true
end

-- Nobody vouches for those whom the notes have inside.
local function void(lock)
    local tickets = redis.call('ZRANGE', set_of(lock, 'i'), 0, -1)
    tickets[#tickets + 1] = lock.holder and lock.holder.ticket
    for _, ticket in ipairs(tickets) do
        local e = find(lock, ticket)
        leave(lock, e, e.retire)
    end
    lock.noted = false
end

-- What is over goes, by the clock; then the key has the last word.
local function sweep(lock)
    lock.holder = lock.holder or (lock.noted and #lock.noted == 32 and find(lock, lock.noted)) or nil
    lock.crowd = lock.due and redis.call('ZCARD', set_of(lock, 'i')) or 0
    local vouched = (lock.holder or lock.crowd > 0) and lock.noted
    if now < lock.time then
        cut(lock)
    end
    if lock.holder and lock.holder.till <= now then
        expire(lock, lock.holder)
    end
    if lock.due and lock.due <= now then
        forget(lock, 'w')
        for _, ticket in ipairs(over(lock, 'i', -1)) do
            expire(lock, find(lock, ticket))
        end
        forget(lock, 'r')
        lock.due = first_due(lock)
    end

    lock.value = redis.pcall('GET', lock.key)
    if type(lock.value) == 'table' then
        lock.value = '' -- of another type: somebody else's
    end
    if lock.value ~= vouched and (lock.holder or lock.crowd > 0) then
        void(lock)
    end
    lock.foreign = lock.value and lock.value ~= vouched
end

local function smaller_limit(a, b)
    return (a == 0 or b == 0) and a + b or math.min(a, b)
end

local function fits(lock, e)
    if lock.holder or lock.foreign then
        return false
    elseif lock.crowd == 0 then
        return true
    elseif e.mode == 'X' then
        return false
    end
    local smallest = redis.call('ZRANGE', set_of(lock, 'l'), 0, 0, 'WITHSCORES')
    local limit = smaller_limit(tonumber(smallest[2] or 0), e.limit)
    return limit == 0 or lock.crowd < limit
end

local function tell(lock, e, gen)
    local channel = string.match(who_of(lock, e), '^(%x+)%z')
    if channel then
        redis.call('PUBLISH', 'holdfast.wake:' .. channel, string.format('%s %d', e.ticket, gen))
    end
end

-- Direct hand-over never leaves the key free, so clients that poll it would wait for ever. With the
-- option yield=N the key is left free for a moment after N hand-overs in a row.
local function may_enter(lock, e)
    if now < lock.gap then
        return false
    elseif lock.gap > 0 then
        lock.gap = 0
    elseif lock.yield ~= '0:0' and lock.crowd == 0 then
        local every, pause = string.match(lock.yield, '^(%d+):(%d+)$')
        if lock.streak >= tonumber(every) then
            lock.streak, lock.gap, lock.touched = 0, now + pause, true
            tell(lock, e, 0)
            return false
        end
        lock.streak = lock.streak + 1
    end
    return true
end

-- A bidder that is let in by its own attempt knows of it from the answer; anybody else may be dead.
local function enter(lock, e, knows)
    lock.gen = math.max(lock.gen + 1, now * 1000)
    e.place, e.gen, e.since = 'I', lock.gen, now
    e.claimed = knows and e.ttl > 0
    give(lock, e, lease_of(e))
    if not knows then
        tell(lock, e, e.gen)
    end
end

-- Lets in the head of the queue while it fits. True: nobody is left waiting.
local function let_in(lock, asker)
    while lock.due do
        local head = redis.call('ZRANGE', set_of(lock, 'q'), 0, 0)[1]
        if not head then
            return true
        end
        local e = find(lock, head)
        if not fits(lock, e) or not may_enter(lock, e) then
            return false
        end
        lift(lock, e)
        enter(lock, e, head == asker)
    end
    return true
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

-- When it is worth asking although nobody called: whoever is first may find that a holder has
-- vanished, everybody else that the one before him has.
local function ask_again(lock, rank)
    if rank > 0 then
        local before = redis.call('ZRANGE', set_of(lock, 'q'), rank - 1, rank - 1)[1]
        return redis.call('ZSCORE', set_of(lock, 'w'), before) - now
    elseif lock.gap > now and not lock.foreign then
        return lock.gap - now
    elseif lock.foreign then
        return redis.call('PTTL', lock.key)
    end
    local till = lock.holder and lock.holder.till
    if not till then
        till = tonumber(redis.call('ZRANGE', set_of(lock, 'i'), 0, 0, 'WITHSCORES')[2])
    end
    return till >= NEVER and -1 or till - now
end

local function granted(e)
    local lease = lease_of(e)
    return string.format('granted %d %d %d', e.gen, lease == NEVER and -1 or lease, e.claimed and 1 or 0)
end

local function queued(lock, e, without_position)
    local rank = redis.call('ZRANK', set_of(lock, 'q'), e.ticket)
    return string.format('queued %d %d %d %d %d', lock.gen, provisional_lease(e.ttl),
                         without_position and 0 or rank + 1, ask_again(lock, rank),
                         lock.foreign and 1 or 0)
end

-- A key that says this ticket, of which there is no note: it is let go like that of anybody else.
local function drop_unknown(lock, ticket)
    if lock.foreign and lock.value == ticket then
        redis.call('DEL', lock.key)
        lock.value, lock.foreign = false, false
        return true
    end
    return false
end

-- The bidder is done with its ticket. An older tombstone is renewed: the last attempt may be younger.
-- Returns where the ticket was.
local function end_bid(lock, ticket, retire)
    local e = find(lock, ticket)
    if not e then
        local was = drop_unknown(lock, ticket) and 'I' or 'gone'
        if retire > 0 then -- its attempt may still be on the way
            lay(lock, {ticket = ticket, place = 'R', mode = 'X', claimed = false, since = now,
                       till = now + retire, gen = 0, ttl = 0, delay = 0, retire = retire, limit = 0,
                       span = retire})
        end
        return was
    end
    local was = e.place
    if was == 'I' or was == 'W' then
        leave(lock, e, retire)
    elseif was == 'R' and e.till < now + retire then
        e.span = retire
        give(lock, e, retire)
    end
    return was
end
