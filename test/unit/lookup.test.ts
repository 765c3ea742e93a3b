import { expect, test } from 'bun:test'
import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { lookup } from '../../src/base/lookup.ts'
import { toneOf } from '../../src/dashboard/page/parts/states.tsx'
import { summaryOf } from '../../src/dashboard/page/run/summary.ts'
import { bodyOf } from '../../src/outbound/egress/body.ts'
import { EgressFailed } from '../../src/outbound/egress/errors.ts'
import { refuseValues } from '../../src/sql/analytics/guard.ts'
import { emulateServer } from '../../src/sql/analytics/introspection.ts'

/** Words from outside that are members of every object. */
const INHERITED = ['constructor', 'toString', 'hasOwnProperty', 'valueOf', '__proto__']

test('a lookup finds only what is in it', () => {
  const table = lookup({ a: 1 })
  expect(table.get('a')).toBe(1)
  for (const name of INHERITED) expect(table.get(name)).toBeUndefined()
})

test('inherited names are unknown tables, functions, parameters, encodings, types and statuses', () => {
  const server = { version: '1', database: 'default', settings: [] }
  for (const name of INHERITED) {
    for (const query of [`SELECT * FROM system.${name}`, `SELECT ${name}()`, `DESCRIBE TABLE ${name}`])
      expect(emulateServer(query, server)).toBe(query)
    expect(emulateServer(`EXISTS TABLE ${name}`, server)).toBe('SELECT 0 AS result')
    expect(() => refuseValues({ text: '', typeParameters: [name] }, { params: {}, parameters: {} })).not.toThrow()
    const answer = Object.assign(new PassThrough(), { headers: { 'content-encoding': name } })
    const options = { host: 'h', maxBytes: 1, signal: new AbortController().signal, onEnd() {} }
    expect(() => bodyOf(answer as unknown as IncomingMessage, options)).toThrow(EgressFailed)
    expect(summaryOf({ type: name, payload: { message: 'm' } })).toBe('m')
    expect(toneOf(name)).toBe('idle')
  }
})
