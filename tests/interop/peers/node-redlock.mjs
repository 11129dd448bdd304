// node-redlock v5 on one server, or on several that vote. See README.md.
import Redlock, { ExecutionError } from 'redlock'
import { serve, servers } from './peer.mjs'

const patient = new Redlock(servers, { retryCount: -1 }) // 200 ms, give or take 100: its default
const hasty = new Redlock(servers, { retryCount: 0 })

function refused(error) {
  if (!(error instanceof ExecutionError)) throw error
  return null
}

await serve({
  attempt: (name, ttl, waits) => (waits ? patient : hasty).acquire([name], ttl).catch(refused),
  release: async (lock) => (await lock.release().catch(refused)) !== null,
})
