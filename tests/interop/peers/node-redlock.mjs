// node-redlock v5 on one server. See README.md.
import Redlock, { ExecutionError } from 'redlock'
import { redis, serve } from './peer.mjs'

const patient = new Redlock([redis], { retryCount: -1 }) // 200 ms, give or take 100: its default
const hasty = new Redlock([redis], { retryCount: 0 })

function refused(error) {
  if (!(error instanceof ExecutionError)) throw error
  return null
}

await serve({
  attempt: (name, ttl, waits) => (waits ? patient : hasty).acquire([name], ttl).catch(refused),
  release: async (lock) => (await lock.release().catch(refused)) !== null,
})
