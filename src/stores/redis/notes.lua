-- What is kept of a lock. `X` stands for {key}, see names.c:
--
--   key               the record everybody sees: a ticket, or a marker while readers are inside
--   holdfast.b:X      the book: the last generation given, in 16 digits; a letter; and by that
--                       h                                     free
--                       H line\0who ticket                    held by one, exclusively, and no more to say
--                       d line\0who ticket                    likewise, but only the rules may end it: it has a
--                                                             lock-delay, or no end, or has opened the value, or
--                                                             strangers are told of it
--                       b time due keep seq streak gap yield key
--                                                             busy: the rest is in the sets. If somebody is
--                                                             inside exclusively: key is its ticket, and
--                                                             " line\0who" follows
--   holdfast.t:X      busy: for each other ticket its "line\0who"
--   holdfast.q:X      who waits, by the order of joining
--   holdfast.w:X      who waits, by when a sign of life is due
--   holdfast.i:X      shared holders, by the end of their lease or linger
--   holdfast.l:X      those of them with a limit, by limit
--   holdfast.e:X      those of them with a lock-delay, by its end
--   holdfast.r:X      tickets that are retired, by when they are forgotten
--   holdfast.h:X      the trail, for who asks for one: a stream of "what mode generation span ago ticket\0cause\0who".
--                     What: G granted, R released (r: since the generation), L lost, B broken, D withdrawn, V vanished; span is how long it
--                     had held or waited, ago how long before the entry it happened, who has no channel
--   holdfast.v:X      the value, once a holder has opened it: "generation order doubt opened bytes". The generation
--                     and the order of who wrote it; doubt 1 or 0; the generation of the holder who has read or
--                     written it and not yet ended, or 0. If that one is not inside it has vanished.
--
-- Of a busy book: time is when a span was last given, due the moment before which nothing in the sets is
-- over (0: they are empty), keep until when the sets are kept, key what the key must say (0: nothing), seq the
-- number of who joined last; for the others see may_enter in rules.lua.
--
-- All of it goes by itself, `retain` after the last thing it speaks of is over; but the value stays.
--
-- The key is the truth, the rest are notes: holders that the key does not vouch for are no holders. A book that
-- cannot be read says nothing but its generation.
--
-- A line is: place mode claimed, since, till, generation, ttl, delay, retire [, limit, span].
-- who is "channel[flags]\0pid\0host\0user\0program\0note", see request.c. The flags are no hexadecimal digits, and
-- clients of before carry them along unseen: w, it wants to hear that somebody waits; W, it has heard; o, it has
-- opened the value; k, its client may keep it after its release, and RESERVED numbers after its own belong to it.
--
-- Places: W waiting, I inside, L lingering, R retired; modes X and S; claimed Y or N. attempt_quick writes the
-- terms of the bid instead ("ttl delay retire ..."): then since follows from what the key has left to live, or
-- if that is gone from the generation, and the rest is as in `enter` of rules.lua.
local NEVER = 9007199254740991
local QUEUE_MAX, RETIRED_MAX = 10000, 10000
local RESERVED = 1048576

-- How long notes are kept that nobody needs, and which strangers are told that the key is free: "retain",
-- or "retain L<list>", "retain P<channel>". "retain~N" if the last N entries of a trail are kept.
local retain, signal, kept

local function read_settings(word)
    local number, count, rest = string.match(word, '^(%d+)~?(%d*) ?(.*)$')
    retain, signal, kept = tonumber(number), rest, count ~= '' and count
end

local function own_lease(ttl)
    return ttl == 0 and 5000 or math.min(math.max(ttl, 1000), 10000)
end

local function provisional_lease(ttl)
    return ttl == 0 and 5000 or math.min(ttl, own_lease(ttl))
end

local function set_who(e, who)
    local channel, flags, rest = string.match(who, '^([%x-]*)([wWok]+)(%z.*)$')
    if channel then
        e.tell, e.told = string.find(flags, '[wW]') ~= nil, string.find(flags, 'W') ~= nil
        e.opened, e.cached = string.find(flags, 'o') ~= nil, string.find(flags, 'k') ~= nil
    end
    e.who = channel and channel .. rest or who
    return e
end

local function who_of(e)
    local flags = (e.told and 'W' or e.tell and 'w' or '') .. (e.opened and 'o' or '') .. (e.cached and 'k' or '')
    local channel, rest = string.match(flags ~= '' and e.who or '', '^([%x-]*)(%z.*)$')
    return channel and channel .. flags .. rest or e.who
end

-- nil for a line that nobody of ours has written, or another version.
local function parse(ticket, text)
    local place, mode, claimed, since, till, gen, ttl, delay, retire, limit, span, who =
        string.match(text, '^(%u)(%u)(%u) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) ?(%d*) ?(%d*)%z(.*)$')
    return place and set_who({ticket = ticket, place = place, mode = mode, claimed = claimed == 'Y',
            since = tonumber(since), till = tonumber(till), gen = tonumber(gen), ttl = tonumber(ttl),
            delay = tonumber(delay), retire = tonumber(retire), limit = tonumber(limit) or 0,
            span = tonumber(span) or 0}, who)
end

local function line_of(e)
    local line = string.format('%s%s%s %d %d %d %d %d %d', e.place, e.mode, e.claimed and 'Y' or 'N',
                               e.since, e.till, e.gen, e.ttl, e.delay, e.retire)
    if e.place == 'L' or e.place == 'R' then
        return string.format('%s %d %d', line, e.limit, e.span)
    end
    return e.limit > 0 and string.format('%s %d', line, e.limit) or line
end

local function format(e)
    return line_of(e) .. '\0' .. (e.place == 'R' and '' or who_of(e))
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

-- By which ticket a key is broken that somebody else holds: its value, if that could be one; else a digest of
-- what is there.
local function ticket_of_stranger(key)
    local value = redis.pcall('GET', key)
    if type(value) == 'string' and #value == 32 and not string.find(value, '[^%da-f]') then
        return value
    elseif value then
        return string.sub(redis.sha1hex(type(value) == 'string' and value or redis.call('DUMP', key)), 1, 32)
    end
end

local function set_of(lock, kind)
    return 'holdfast.' .. kind .. lock.tail
end

-- What has become of an entry, if somebody wants to know. What cannot be written is not: nothing else depends on it.
local function trail(lock, what, e, span, ago, cause)
    if kept then
        local entry = string.format('%s%s %d %d %d %s\0%s\0', what, e.mode, e.gen, math.max(span, 0), ago, e.ticket, cause)
        redis.pcall('XADD', set_of(lock, 'h'), 'MAXLEN', #kept > 2 and '~' or '=', kept, '*', 'e', entry .. string.match(e.who, '^[^%z]*%z?(.*)$'))
        redis.pcall('PEXPIRE', set_of(lock, 'h'), retain)
    end
end

local function time_left(key)
    return redis.call('PTTL', key)
end

local function read_quiet(lock, text, from)
    local ticket, rest = string.sub(text, -32), string.sub(text, from, -33)
    local ttl, delay, retire, who = string.match(rest, '^(%d+) (%d+) (%d+)[^%z]*%z(.*)$')
    if ttl then
        local e = set_who({ticket = ticket, place = 'I', mode = 'X', claimed = ttl ~= '0', gen = lock.gen,
                           ttl = tonumber(ttl), delay = tonumber(delay), retire = tonumber(retire), limit = 0,
                           span = 0}, who)
        local left = time_left(lock.key)
        local spent = lease_of(e) + (e.claimed and e.delay or 0) - left
        e.since = left > 0 and now - spent or math.floor(lock.gen / 1000)
        e.till = e.since + lease_of(e)
        lock.holder = e
    else
        lock.holder = parse(ticket, rest)
    end
    if not lock.holder then
        return
    end
    lock.noted = ticket
    lock.time = lock.holder.till == NEVER and lock.holder.since or lock.holder.till - lease_of(lock.holder)
end

local function read_busy(lock, text)
    local time, due, keep, seq, streak, gap, yield, noted, line =
        string.match(text, '^%d+b(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) ([^ ]+) ?(.*)$')
    if not time then
        return
    end
    lock.time, lock.seq, lock.streak, lock.gap, lock.keep = tonumber(time), tonumber(seq), tonumber(streak),
        tonumber(gap), tonumber(keep)
    lock.due = due ~= '0' and tonumber(due) or nil
    lock.noted = noted ~= '0' and noted
    lock.holder = line ~= '' and parse(noted, line) or nil
    lock.yield = yield
    lock.busy = true
end

local function open(key, book)
    local lock = {key = key, book = book, tail = string.sub(book, 11), gen = 0, time = 0, seq = 0,
                  streak = 0, gap = 0, yield = '0:0', noted = false, entries = {}, fields = {}, crowd = 0,
                  keep = 0, latest = 0, given = 0, made = {}}
    local text = redis.call('GET', book) or ''
    local gen, letter, from = string.match(text, '^(%d+)(%a)()')
    lock.gen = tonumber(gen) or 0
    if letter == 'H' or letter == 'd' then
        read_quiet(lock, text, from)
    elseif letter == 'b' then
        read_busy(lock, text)
    end
    if lock.holder then
        lock.entries[lock.holder.ticket] = lock.holder
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

-- The same, of who stays where it is.
local function note_flags(lock, e)
    if e == lock.holder then
        lock.touched = true
    else
        note(lock, e.ticket, format(e))
    end
end

local function erase(lock, field)
    note(lock, field, false)
end

-- A set that may not have been there; close() gives it its time. The tickets in it have lines in `t`.
local function make(lock, kind)
    lock.made[kind], lock.made.t = true, true
end

-- Out of the sets its place keeps it in.
local function lift(lock, e)
    if e.place == 'W' then
        redis.call('ZREM', set_of(lock, 'q'), e.ticket)
        redis.call('ZREM', set_of(lock, 'w'), e.ticket)
        erase(lock, e.ticket)
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
        return
    end
    lock.entries[e.ticket] = e
    if (e.place == 'I' or e.place == 'L') and e.mode == 'X' then
        lock.holder = e
        lock.moved, lock.touched = true, true
        return
    end
    note(lock, e.ticket, format(e))
    lock.latest = math.max(lock.latest, math.min(e.till + e.delay, NEVER))
    if e.place == 'R' then
        redis.call('ZADD', set_of(lock, 'r'), e.till, e.ticket)
        make(lock, 'r')
    elseif e.place == 'W' then
        redis.call('ZADD', set_of(lock, 'w'), e.till, e.ticket)
    else
        local added = redis.call('ZADD', set_of(lock, 'i'), e.till, e.ticket)
        lock.crowd = lock.crowd + added
        lock.moved = true
        lock.telling = lock.telling or e.tell
        if added == 1 and lock.crowd == 1 then
            make(lock, 'i')
        end
        if e.limit > 0 and redis.call('ZADD', set_of(lock, 'l'), e.limit, e.ticket) == 1 then
            make(lock, 'l')
        end
        if e.delay > 0 and e.claimed and e.place == 'I' and
            redis.call('ZADD', set_of(lock, 'e'), math.min(e.till + e.delay, NEVER), e.ticket) == 1 then
            make(lock, 'e')
        end
    end
    lock.due = math.min(lock.due or NEVER, e.till)
end

-- What the key must say, and until when; nil: nothing.
local function key_of(lock)
    if lock.holder then
        local e = lock.holder
        return e.ticket, e.till + (e.place == 'I' and e.claimed and e.delay or 0)
    elseif lock.crowd > 0 then
        local last = redis.call('ZRANGE', set_of(lock, 'i'), -1, -1, 'WITHSCORES')
        local delayed = redis.call('ZRANGE', set_of(lock, 'e'), -1, -1, 'WITHSCORES')
        local says = lock.noted and #lock.noted ~= 32 and lock.noted or string.format('shared:%d', lock.gen)
        if lock.telling and string.sub(says, -1) ~= 'w' then
            says = says .. 'w' -- one of them wants to hear that somebody waits: nobody looks for it otherwise
        end
        return says, math.max(tonumber(last[2]), tonumber(delayed[2] or 0))
    end
end

-- Strangers who sleep until they are told that the key is free: python-redis-lock waits for an element of a
-- list, Spring's RedisLockRegistry for a message. Who may not do that still lets go.
local function tell_strangers(lock)
    local kind, to = string.match(signal, '^(%u)(.+)$')
    if kind == 'L' then
        redis.pcall('DEL', to)
        redis.pcall('LPUSH', to, '1')
        redis.pcall('PEXPIRE', to, 1000)
    elseif kind == 'P' then
        redis.pcall('PUBLISH', to, lock.key)
    end
end

local function free_key(lock)
    redis.call('DEL', lock.key)
    tell_strangers(lock)
end

local function settle_key(lock, says, till)
    if not says then
        if lock.value and not lock.foreign then
            free_key(lock)
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

-- Gives the sets their time: those that may be new, and all of them when half of what they had is over, or
-- something is to last longer. `t` is the last, because the others are of no use without it, and the
-- book lasts longer than it, because nobody would look for them then.
local function keep_sets(lock)
    local last = math.max(now, lock.latest)
    if lock.keep == NEVER or lock.keep < last + retain / 2 then
        for kind in string.gmatch(lock.busy and 'wier' or '', '.') do
            local member = redis.call('ZRANGE', set_of(lock, kind), -1, -1, 'WITHSCORES')
            last = math.max(last, tonumber(member[2] or 0))
        end
        lock.keep = last >= NEVER and NEVER or last + retain
        lock.made.all = lock.busy
    end
    for kind in string.gmatch('qwilert', '.') do
        if lock.made[kind] or lock.made.all then
            if lock.keep == NEVER then
                redis.call('PERSIST', set_of(lock, kind))
            else
                redis.call('PEXPIRE', set_of(lock, kind), lock.keep - now)
            end
        end
    end
end

local function book_of(lock, busy)
    local e, gen = lock.holder, string.format('%016d', lock.gen)
    if busy then
        return string.format('%sb%d %d %d %d %d %d %s %s', gen, math.max(now, lock.given), lock.due or 0, lock.keep, lock.seq,
                             lock.streak, lock.gap, lock.yield, lock.noted or '0') ..
            (e and ' ' .. format(e) or '')
    elseif e then
        local quick = e.delay == 0 and e.ttl > 0 and signal == '' and not e.opened
        return gen .. (quick and 'H' or 'd') .. format(e) .. e.ticket
    end
    return gen .. 'h'
end

local function write_notes(lock)
    local e, last = lock.holder, now
    local busy = lock.due or lock.gap > 0 or (e and e.place ~= 'I')
    if busy then
        write_tickets(lock)
        keep_sets(lock)
        last = math.max(last, lock.keep)
    elseif lock.busy then
        redis.call('DEL', set_of(lock, 't'))
    end
    if e then
        last = math.max(last, e.till + e.delay)
    end
    if last >= NEVER then
        redis.call('SET', lock.book, book_of(lock, busy))
    else
        redis.call('SET', lock.book, book_of(lock, busy), 'PX', last - now + retain)
    end
end

-- Writes what has changed, and passes the answer on. The key comes last: should the server refuse something on
-- the way, there are notes of a holder for whom no key vouches, and that is nobody.
local function close(lock, answer)
    local says, till
    if lock.moved then
        says, till = key_of(lock)
        lock.noted = says or false
    end
    if lock.touched then
        write_notes(lock)
    end
    if lock.moved then
        settle_key(lock, says, till)
    end
    return answer
end
