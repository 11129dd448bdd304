-- The server's clock, read once for the whole script: in milliseconds, and for generations in microseconds.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local stamp = time[1] * 1000000 + time[2]
