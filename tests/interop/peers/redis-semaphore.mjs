// redis-semaphore's Mutex, whose key is mutex:NAME. See README.md.
import { Mutex } from 'redis-semaphore'
import { redis, serve } from './peer.mjs'

await serve({
  async attempt(name, ttl, waits) {
    const limits = waits ? { acquireTimeout: 60000 } : { acquireAttemptsLimit: 1 }
    const mutex = new Mutex(redis, name, { lockTimeout: ttl, refreshInterval: 0, ...limits })
    return (await mutex.tryAcquire()) ? mutex : null
  },
  holds: async (mutex) => (await redis.get(mutex._key)) === mutex.identifier,
  release: async (mutex) => {
    await mutex.release()
    return true
  },
})
