import { describe, expect, test } from 'bun:test'
import { connectNats, natsOptions } from '../../src/stores/journal/nats/connect.ts'
import { isOldNats } from '../../src/stores/journal/nats/version.ts'
import { hasNats, NatsServer } from '../support/nats.ts'
import { freePort } from '../support/service.ts'
import { atEnd } from '../support/teardown.ts'

/** The addresses in NATS_URL, on a server that asks for a password. */

const PASSWORD = '7f00 e1@/:'

test('addresses lose their credentials, which become options', () => {
  expect(natsOptions(['nats://a', 'nats://b:4333'])).toEqual({ servers: ['a', 'b:4333'] })
  expect(natsOptions(['nats://ada:x%40y@[::1]:4222'])).toEqual({ servers: ['[::1]:4222'], user: 'ada', pass: 'x@y' })
  expect(natsOptions(['tls://token@a:4222'])).toEqual({ servers: ['a:4222'], token: 'token', tls: {} })
  expect(() => natsOptions(['nats://a:b@c', 'nats://a:d@e'])).toThrow('the same user and password')
})

describe.skipIf(!hasNats)('a server with a password', () => {
  const port = freePort()
  const server = new NatsServer('n0', port, ['-a', '127.0.0.1', '-p', `${port}`, '--user', 'ada', '--pass', PASSWORD])
  const urlOf = (password: string) => `nats://ada:${encodeURIComponent(password)}@127.0.0.1:${port}`

  test('is waited for, and accepts the user and password of the URL', async () => {
    const connecting = connectNats([urlOf(PASSWORD)])
    atEnd(() => server.kill())
    await server.start()
    const nc = await connecting
    await nc.flush()
    await nc.close()
  })

  test('ends the start at once when the password is wrong, without naming it', async () => {
    const failing = connectNats([urlOf('mistaken')])
    await expect(failing).rejects.toThrow('NATS_URL cannot be used: the servers refuse its user or password')
  })

  test('a server that does not answer ends the start after some time', async () => {
    const failing = connectNats([`nats://127.0.0.1:${freePort()}`], { patienceMs: 300 })
    await expect(failing).rejects.toThrow('NATS_URL cannot be used: no server answers')
  })
})

test('knows versions that are too old', () => {
  expect(['1.4.1', '2.9.10', '2.10.0-beta', '2.10.27', '3.0.0'].map(isOldNats)).toEqual([
    true,
    true,
    false,
    false,
    false,
  ])
})
