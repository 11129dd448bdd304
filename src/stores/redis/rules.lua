-- The rules of src/doorman/doorman.c, over what notes.lua keeps. Every operation is: open, sweep, apply,
-- let in, close. None looks at more than the entries it is about, those that are over and those it lets in.
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

-- A holder ends without a word: each number that belongs to it may have been used.
local function note_numbers(lock, e)
    if e.place == 'I' and e.cached then
        lock.gen, lock.touched = math.max(lock.gen, e.gen + RESERVED), true
    end
end

-- A holder whose time is over. One that knew it held keeps the door closed for its lock-delay.
local function expire(lock, e)
    if e.place == 'I' then
        trail(lock, 'L', e, e.till - e.since, now - e.till, e.claimed and 'expired' or 'unclaimed')
    end
    note_numbers(lock, e)
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

-- The entry of a ticket that is in a set. If its line is gone somebody has meddled with the notes: then it is
-- nobody's, and goes too.
local function member(lock, ticket)
    local e = find(lock, ticket)
    if not e then
        for kind in string.gmatch('qwiler', '.') do
            lock.crowd = lock.crowd - (redis.call('ZREM', set_of(lock, kind), ticket) == 1 and kind == 'i' and 1 or 0)
        end
    end
    return e
end

local function over(lock, kind, count)
    return redis.call('ZRANGEBYSCORE', set_of(lock, kind), '-inf', now, 'LIMIT', 0, count)
end

-- Waiters without a sign of life, and tickets that were remembered long enough.
local function forget(lock, kind)
    local tickets = over(lock, kind, 1000)
    while #tickets > 0 do
        for _, ticket in ipairs(tickets) do
            local e = kept and kind == 'w' and find(lock, ticket)
            if e then
                trail(lock, 'V', e, e.till - e.since, now - e.till, '')
            end
            lock.entries[ticket] = false
            erase(lock, ticket)
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
    tickets[#tickets + 1] = lock.holder and lock.holder.ticket
    for _, ticket in ipairs(tickets) do
        local e = member(lock, ticket)
        if e and e.till ~= NEVER and e.till - now > lease_of(e) then
            give(lock, e, lease_of(e))
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
        local e = member(lock, ticket)
        if e then
            if e.place == 'I' then
                trail(lock, 'L', e, now - e.since, 0, 'deleted')
            end
            note_numbers(lock, e)
            leave(lock, e, e.retire)
        end
    end
    lock.noted = false
end

-- What is over goes, by the clock; then the key has the last word.
local function sweep(lock)
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
            local e = member(lock, ticket)
            if e then
                expire(lock, e)
            end
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
    if lock.foreign and lock.gap > 0 then
        lock.gap, lock.touched = 0, true -- the turn that was left to strangers has been taken
    end
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

-- Who may not publish still lets in: an error here would leave half of it done.
local function tell(lock, e, gen)
    local channel = string.match(e.who, '^(%x+)%z')
    if channel then
        redis.pcall('PUBLISH', 'holdfast.wake:' .. channel, string.format('%s %d', e.ticket, gen))
    end
end

-- Direct hand-over never leaves the key free, so clients that poll it would wait for ever. With the
-- option yield=N the key is left free after N hand-overs in a row, until one of them has had it (sweep sees that)
-- or the moment is over: so their share is one turn in N + 1.
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
    local waited = now - e.since
    lock.gen = math.max(lock.gen + 1, stamp)
    e.place, e.gen, e.since = 'I', lock.gen, now
    if waited > 0 then
        trail(lock, 'G', e, waited, 0, '')
    end
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
            if not lock.holder and lock.crowd == 0 then
                lock.due = first_due(lock) -- perhaps there is nothing left to keep
            end
            return true
        end
        local e = member(lock, head)
        if e and (not fits(lock, e) or not may_enter(lock, e)) then
            return false
        elseif e then
            lift(lock, e)
            enter(lock, e, head == asker)
        end
    end
    return true
end

-- When it is worth asking although nobody called: whoever is first may find that a holder has
-- vanished, everybody else that the one before him has.
local function ask_again(lock, rank)
    if rank > 0 then
        local before = redis.call('ZRANGE', set_of(lock, 'q'), rank - 1, rank - 1)[1]
        return (redis.call('ZSCORE', set_of(lock, 'w'), before) or now) - now
    elseif lock.gap > now and not lock.foreign then
        return lock.gap - now
    elseif lock.foreign then
        return redis.call('PTTL', lock.key)
    end
    local till = lock.holder and lock.holder.till
    if not till then
        till = tonumber(redis.call('ZRANGE', set_of(lock, 'i'), 0, 0, 'WITHSCORES')[2])
    end
    return not till and 0 or till >= NEVER and -1 or till - now
end

local function join(lock, e, is_first)
    lock.seq = lock.seq + 1
    lock.touched = true
    redis.call('ZADD', set_of(lock, 'q'), lock.seq, e.ticket)
    if is_first then
        make(lock, 'q')
        make(lock, 'w')
    end
end

-- A fourth number says that somebody waits, to whom wants to hear it. Who hears that nobody does is called again
-- for the next who comes.
local function granted(lock, e)
    local lease = lease_of(e)
    local wanted = e.tell and lock.due and redis.call('ZCARD', set_of(lock, 'q')) > 0
    if e.told and not wanted then
        e.told = false
        note_flags(lock, e)
    end
    return string.format(wanted and 'granted %d %d %d 1' or 'granted %d %d %d', e.gen,
                         lease == NEVER and -1 or lease, e.claimed and 1 or 0)
end

-- Somebody has come to wait: each holder that asked for it is called, once.
local function call_holder(lock, e)
    if e and e.place == 'I' and e.tell and not e.told then
        e.told = true
        note_flags(lock, e)
        tell(lock, e, 0)
    end
end

local function call_holders(lock)
    if lock.holder then
        call_holder(lock, lock.holder)
    elseif lock.crowd > 0 and (lock.telling or string.sub(lock.noted or '', -1) == 'w') then
        for _, ticket in ipairs(redis.call('ZRANGE', set_of(lock, 'i'), 0, -1)) do
            call_holder(lock, find(lock, ticket))
        end
    end
end

-- The same for somebody who does not wait: only one that may keep the lock without using it. "busy 1": there is one.
local function busy(lock)
    local e = lock.holder
    if e and e.place == 'I' and e.cached then
        call_holder(lock, e)
        return 'busy 1'
    end
    return 'busy'
end

local function queued(lock, e, without_position)
    local rank = redis.call('ZRANK', set_of(lock, 'q'), e.ticket)
    if not rank then -- somebody has meddled with the queue
        join(lock, e, true)
        rank = redis.call('ZRANK', set_of(lock, 'q'), e.ticket)
    end
    local strangers = lock.foreign and 1 or lock.gap > now and 2 or 0 -- one holds it; it is left to them
    return string.format('queued %d %d %d %d %d', lock.gen, provisional_lease(e.ttl),
                         without_position and 0 or rank + 1, ask_again(lock, rank), strangers)
end

-- A key that says this ticket, of which there is no note: it is let go like that of anybody else.
local function drop_unknown(lock, ticket)
    if lock.foreign and lock.value == ticket then
        free_key(lock)
        lock.value, lock.foreign = false, false
        return true
    end
    return false
end

-- "ticket 60000" is how an operation names a ticket and its number, "ticket" if that is 0.
local function ticket_and_number(word)
    return string.sub(word, 1, 32), tonumber(string.sub(word, 33)) or 0
end

-- The holder that had opened the value has ended as it should: nothing is in doubt because of it.
local function shut_value(lock, e)
    local text = redis.pcall('GET', set_of(lock, 'v'))
    local head, opened, bytes =
        string.match(type(text) == 'string' and text or '', '^(%d+ %d+ %d) (%d+)( .*)$')
    if tonumber(opened) ~= e.gen then
        return
    elseif head == '0 0 0' then
        redis.call('DEL', set_of(lock, 'v')) -- nobody has ever written it
    else
        redis.call('SET', set_of(lock, 'v'), head .. ' 0' .. bytes)
    end
end

-- The bidder is done with its ticket. A lock-delay stays, unless the grant was unused. An older tombstone is
-- renewed: the last attempt may be younger. Returns where the ticket was.
local function end_bid(lock, ticket, retire, unused)
    local e = find(lock, ticket)
    if not e then
        local was = drop_unknown(lock, ticket) and 'I' or 'gone'
        if retire > 0 then -- its attempt may still be on the way
            lay(lock, {ticket = ticket, place = 'R', mode = 'X', claimed = false, since = now,
                       till = now + retire, gen = 0, ttl = 0, delay = 0, retire = retire, limit = 0,
                       span = retire, who = ''})
        end
        return was
    end
    local was = e.place
    if was == 'I' and e.opened then
        shut_value(lock, e)
    end
    if was == 'I' or was == 'W' then
        trail(lock, was == 'I' and not unused and 'R' or 'D', e, now - e.since, 0, '')
    end
    if was == 'I' or was == 'W' or was == 'L' and unused then
        leave(lock, e, retire)
    elseif was == 'R' and e.till < now + retire then
        e.span = retire
        give(lock, e, retire)
    end
    return was
end
