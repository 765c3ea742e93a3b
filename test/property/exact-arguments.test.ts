import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { inexactIn } from '../../src/outbound/model/exact-json.ts'
import { createSchemaChecks } from '../../src/outbound/model/output-schema.ts'
import { untilStatus } from '../support/hosted.ts'
import { startHostedRig } from '../support/hosted-rig.ts'
import { startMcpServer, textResult, tool } from '../support/mcp-server.ts'

/**
 * Tools get exact arguments: those that are accepted arrive exactly as the model wrote them
 * (docs/hosted-agents.md).
 */

const SEED = Number(process.env.SEED ?? Date.now() % 2 ** 31)

/** Spellings of numbers, many of them at the limits of a double. */
const number = fc.oneof(
  fc.tuple(fc.constantFrom('', '-'), fc.bigInt(0n, 10n ** 25n)).map(([sign, digits]) => `${sign}${digits}`),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc
    .tuple(
      fc.constantFrom('0', '1', '-1', '-0', '9007199254740993', '12300', '4.9', '0.1', '17976931348623157', '2.50'),
      fc.constantFrom('', '.0', '.000', 'e0', 'e1', 'E+22', 'e-1', 'e-324', 'e309', 'e292', '00', '5'),
    )
    .map(([start, end]) => (start.includes('.') && end.startsWith('.') ? start : start + end))
    .filter((text) => /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text)),
)
const string = fc.oneof(
  fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
  fc.constantFrom(
    '"a"',
    '"\\u0061"',
    '"b"',
    '"\\\\"',
    '"\\""',
    '"\\ud83d"',
    '"\\ud83d\\ude00"',
    '"__proto__"',
    '"1,{["',
    '""',
  ),
)
const { object } = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    number,
    string,
    fc.constantFrom('true', 'false', 'null', ' 1 ', '[]', '{}'),
    fc.array(tie('value'), { maxLength: 4 }).map((items) => `[${items.join(', ')}]`),
    tie('object'),
  ),
  object: fc
    .array(fc.tuple(string, tie('value')), { maxLength: 5 })
    .map((members) => `{${members.map(([name, value]) => `${name} :${value}`).join(',\n')}}`),
}))

/** A value as written, not as JavaScript parses it: every member, and numbers with all digits. */
type Exact = string | readonly Exact[] | { readonly members: readonly (readonly [string, Exact])[] }

function exactly(text: string): Exact {
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g)!.values()
  const next = () => tokens.next().value as string
  const read = (token: string): Exact => {
    if (token === '[') return listUntil(']', read)
    if (token !== '{') return scalar(token)
    const member = (name: string) => {
      next()
      return [JSON.parse(name) as string, read(next())] as const
    }
    const members = listUntil('}', member)
    return { members: members.toSorted(([a], [b]) => (a < b ? -1 : Number(a > b))) }
  }
  function listUntil<T>(end: string, item: (token: string) => T): T[] {
    const items: T[] = []
    for (let token = next(); token !== end; token = next()) if (token !== ',') items.push(item(token))
    return items
  }
  return read(next())
}

function scalar(token: string): string {
  const [, sign, whole, fraction = '', exponent = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(token) ?? []
  if (whole === undefined) return token.startsWith('"') ? `text ${JSON.parse(token)}` : token
  return `${sign}${BigInt(whole + fraction) * 10n ** BigInt(Number(exponent) - fraction.length + 2_000)}`
}

function memberOf(value: Exact, ...path: readonly string[]): Exact {
  for (const name of path)
    value = (value as { members: readonly (readonly [string, Exact])[] }).members.find(([each]) => each === name)![1]
  return value
}

const wellFormed = (text: string) => !/\\ud83d(?!\\ude00)/.test(text)

describe(`arguments (SEED=${SEED})`, () => {
  test('are accepted if and only if serializing them again changes no value', () => {
    const { checkArguments } = createSchemaChecks()
    let accepted = 0
    fc.assert(
      fc.property(object, (text) => {
        const isSame = Bun.deepEquals(exactly(JSON.stringify(JSON.parse(text))), exactly(text)) && wellFormed(text)
        expect(inexactIn(text) === undefined).toBe(isSame)
        const checked = checkArguments({}, text)
        expect('value' in checked).toBe(isSame)
        if ('value' in checked) accepted++
      }),
      { seed: SEED, numRuns: 5_000 },
    )
    expect(accepted).toBeGreaterThan(500)
  })

  test('of three million characters are checked quickly, whatever they contain', () => {
    const n = 3_000_000
    for (const inner of [
      '1'.repeat(n),
      `1${'0'.repeat(n)}1`,
      `0.${'0'.repeat(n)}1e${n}`,
      `"${'\\\\'.repeat(n / 2)}"`,
      `"${'\\"'.repeat(n / 2)}"`,
    ])
      inexactIn(`{"a": ${inner}}`)
    const deep = `${'{"a":['.repeat(n / 6)}1e400${']}'.repeat(n / 6)}`
    expect(inexactIn(deep)!.problem).toStartWith('the number 1e400')
  })

  test('edited by a person reach the tool exactly as they were accepted, over HTTP and MCP', async () => {
    const rig = await startHostedRig()
    const mcp = startMcpServer({ tools: [tool('remote')], call: () => textResult('done') })
    const each = 25
    const calls = Array.from({ length: 2 * each }, (_, n) => ({
      name: n < each ? 'local' : 'remote',
      arguments: {},
      id: `call_${n}`,
    }))
    const agent = await rig.agent(rig.service, [{ toolCalls: calls }, { text: 'done' }], {
      tools: [
        rig.tools.tool('local', { requires_approval: true, parameters: { type: 'object' } }),
        { type: 'mcp', name: 'far', description: 'Far away.', server_url: mcp.url, requires_approval: true },
      ],
    })
    const { data } = await agent.invoke()
    const list = await rig.service.api('GET', `/api/v1/approvals?run_id=${data.run_id}&limit=200`)
    expect(list.data.items).toHaveLength(2 * each)
    const shown: Record<string, Exact[]> = { local: [], remote: [] }
    const texts = fc.sample(object, { seed: SEED, numRuns: 20 * each }).filter((text) => text.length > 10)
    for (const { approval_id, tool: name } of list.data.items) {
      const path = `/api/v1/approvals/${approval_id}/approve`
      for (;;) {
        const edited = texts.pop()!
        const { status, error } = await rig.service.api('POST', path, `{"background": true, "edited_input": ${edited}}`)
        expect(status === 202 ? '' : error!.message).toMatch(
          /^$|^edited_input.*(exactly|duplicate member|lone surrogate)/s,
        )
        if (status !== 202) continue
        shown[name]!.push(exactly(edited))
        break
      }
    }
    await untilStatus(rig.service, data.run_id, 'completed')
    const sorted = (values: readonly Exact[]) => values.map((value) => JSON.stringify(value)).sort()
    expect(sorted(rig.tools.of('local').map(({ text }) => exactly(text)))).toEqual(sorted(shown.local!))
    const made = mcp.seen.filter(({ method }) => method === 'tools/call')
    expect(sorted(made.map(({ text }) => memberOf(exactly(text), 'params', 'arguments')))).toEqual(
      sorted(shown.remote!),
    )
  })
})
