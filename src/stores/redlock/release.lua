-- release: deletes the key if it is still ours, and the note with it. With a time, the ticket is remembered
-- for so long: an attempt of it may still be on its way to this node. With a round it takes back what that round
-- of asking has got: the same ticket may have asked again since, on another connection, and hold by now.
-- KEYS  key note
-- ARGV  ticket retire round (0: whichever)
-- 1 it was ours, 0 it was not
local ours = redis.pcall('GET', KEYS[1]) == ARGV[1]
if ours and ARGV[3] ~= '0' then
    local noted = string.match(redis.call('GET', KEYS[2]) or '', '^%d+ %d+ %d+ %d+ (%d+) ')
    if noted and tonumber(noted) > tonumber(ARGV[3]) then
        return 0
    end
end
if ours then
    redis.call('DEL', KEYS[1], KEYS[2]) -- first: a full server allows it, and after it the other
end
if ARGV[2] ~= '0' then
    redis.call('SET', KEYS[2], 'over', 'PX', ARGV[2])
end
return ours and 1 or 0
