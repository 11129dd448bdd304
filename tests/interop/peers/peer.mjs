// What the peers for Node.js share: lines in, lines out. See README.md.
import readline from 'node:readline'
import Redis from 'ioredis'

const words = process.argv.slice(2)

export const servers = []
for (let i = 0; i < words.length; i += 2) {
  servers.push(new Redis({ host: words[i], port: Number(words[i + 1]) }))
  servers.at(-1).on('error', () => {}) // it tries again by itself
}
export const redis = servers[0]

const now = () => process.hrtime.bigint() / 1000n

// `client` has attempt(name, ttl, patient), which gives a lock or null, and release(lock), which
// says whether it was still held; one whose release cannot tell has holds(lock) as well.
export async function serve(client) {
  const locks = new Map()

  async function attempt(name, ttl, patient) {
    const lock = await client.attempt(name, ttl, patient)
    if (lock !== null) locks.set(name, lock)
    return `${lock !== null ? 'held' : 'busy'} ${now()}`
  }

  async function release(name) {
    const lock = locks.get(name)
    const held = client.holds === undefined || (await client.holds(lock))
    const from = now()
    const released = await client.release(lock)
    locks.delete(name)
    return `${held && released ? 'released' : 'gone'} ${from}`
  }

  async function pairs(count) {
    const from = now()
    for (let i = 0; i < count; i++) await client.release(await client.attempt('bench', 30000, false))
    return `pairs ${now() - from}`
  }

  const verbs = {
    try: ([name, ttl]) => attempt(name, Number(ttl), false),
    wait: ([name, ttl]) => attempt(name, Number(ttl), true),
    release: ([name]) => release(name),
    pairs: ([count]) => pairs(Number(count)),
  }
  console.log('ready')
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [verb, ...words] = line.split(' ')
    console.log(await verbs[verb](words))
  }
  for (const server of servers) server.disconnect()
}
