-- release: deletes the key if it is still ours, and the note with it. With a time, the ticket is remembered
-- for so long: an attempt of it may still be on its way to this node. With a round it takes back what that round
-- of asking has got: the same ticket may have asked again since, on another connection, and hold by now.
-- KEYS  key note
-- With one more, the key stays until so long after it was set, under another value: it is nobody's then, and nobody
-- extends it or lets it go.
-- ARGV  ticket retire round (0: whichever) [at_least]
-- 1 it was ours, 0 it was not
local ours = redis.pcall('GET', KEYS[1]) == ARGV[1]
if ours and ARGV[3] ~= '0' then
    local noted = string.match(redis.call('GET', KEYS[2]) or '', '^%d+ %d+ %d+ %d+ (%d+) ')
    if noted and tonumber(noted) > tonumber(ARGV[3]) then
        return 0
    end
end
local rest = 0
if ours and ARGV[4] then
    local seconds, micros = string.match(redis.call('GET', KEYS[2]) or '', '^(%d+) (%d+) ')
    local time = redis.call('TIME')
    rest = seconds and (seconds - time[1]) * 1000 + math.floor((micros - time[2]) / 1000) + ARGV[4] or 0
end
if rest > 0 then
    redis.call('DEL', KEYS[2]) -- first: a full server allows it, and after it the others
    redis.call('SET', KEYS[1], 'kept closed by holdfast after a release', 'PX', rest)
elseif ours then
    redis.call('DEL', KEYS[1], KEYS[2]) -- likewise
end
if ARGV[2] ~= '0' then
    redis.call('SET', KEYS[2], 'over', 'PX', ARGV[2])
end
return ours and 1 or 0
