import { expect, test } from 'bun:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import packageJson from '../../package.json' with { type: 'json' }
import { newAgent } from '../support/api.ts'
import { OPERATOR_TOKEN, startTestService } from '../support/service.ts'
import { type Endpoint, eachSchema, readDocument, resolve, type Schema } from './document.ts'

/** The document at `GET /docs/json` as a whole. `answers.test.ts` compares it with real responses. */

const service = await startTestService()
const { json, operations } = await readDocument(service)
const endpoints = [...operations.values()]
const hasEnvelope = ({ operation }: Endpoint) => operation.responses.default === undefined

test('an independent validator accepts the document', async () => {
  const { valid, errors } = await new Validator().validate(structuredClone(json))
  expect(errors).toBeUndefined()
  expect(valid).toBe(true)
  expect(json).toMatchObject({ openapi: '3.1.0', info: { version: packageJson.version } })
})

// Generated clients use them: `cross-talk.test.ts` calls each by its name, so that none changes unnoticed.
test('operation ids are unique', () => {
  expect(operations.size).toBe(Object.values<object>(json.paths).flatMap(Object.keys).length)
})

test('every operation has a summary, a description, a known tag and its accepted keys', () => {
  const tags: readonly string[] = json.tags.map(({ name }: { name: string }) => name)
  const schemes = Object.keys(json.components.securitySchemes)
  for (const { operation } of endpoints) {
    const { operationId, summary, description, security } = operation
    expect(summary?.length, operationId).toBeGreaterThan(5)
    expect(description?.length, operationId).toBeGreaterThan(10)
    expect(tags, operationId).toContain(operation.tags?.[0] ?? '')
    expect(security, operationId).toBeArray()
    for (const name of security!.flatMap(Object.keys)) expect(schemes, operationId).toContain(name)
  }
  expect(new Set(endpoints.flatMap(({ operation }) => operation.tags))).toEqual(new Set(tags))
})

test('every JSON response uses the envelope, and every error is a shared component', () => {
  for (const { operation, path } of endpoints.filter(hasEnvelope)) {
    const { operationId, responses } = operation
    expect(Object.keys(responses), operationId).toContain('500')
    for (const [status, { $ref, content }] of Object.entries(responses)) {
      const schema = content?.['application/json']?.schema
      if (schema !== undefined) expect(schema.required, operationId).toEqual(['data', 'error'])
      if (Number(status) < 400) expect($ref, operationId).toBeUndefined()
      else expect(json.components.responses[$ref!.split('/').at(-1)!], operationId).toBeDefined()
    }
    expect(path.includes('{'), operationId).toBe(operation.parameters?.some((each) => each.in === 'path') ?? false)
  }
})

test('every property and parameter has a description', () => {
  const bare: string[] = []
  const isDescribed = (schema: Schema): boolean =>
    typeof schema?.description === 'string' || (schema?.$ref !== undefined && isDescribed(resolve(json, schema)))
  eachSchema(json, (schema, path) => {
    if (path.endsWith('/properties')) return
    // The operation itself describes the data of an envelope.
    for (const [name, member] of Object.entries(schema.properties ?? {}))
      if (!isDescribed(member) && !path.endsWith('application/json/schema')) bare.push(`${path}/${name}`)
    if (schema.in !== undefined && schema.name !== undefined && !isDescribed(schema))
      bare.push(`${path} ${schema.name}`)
  })
  expect(bare).toEqual([])
})

test('numbers are not also strings, and no schema has members or formats of the generator', () => {
  const wrong: string[] = []
  eachSchema(json, (schema, path) => {
    const types = [schema.type, ...(schema.anyOf ?? []).map(({ type }: Schema) => type)].flat()
    const isNumber = types.includes('integer') || types.includes('number')
    if (isNumber && types.includes('string') && !EITHER.some((end) => path.endsWith(end))) wrong.push(path)
    if (['integer', 'numeric', 'boolean'].includes(schema.format)) wrong.push(path)
    if (schema.patternProperties !== undefined || schema.elysiaMeta !== undefined) wrong.push(path)
  })
  expect(wrong).toEqual([])
})

/** Schemas that may be a number or a string: positions and values of SQL parameters. */
const EITHER = ['/wait_for', '/after', '/SqlScalar']

test('shared schemas are named components, and every component is used', () => {
  const text = JSON.stringify(json)
  const unused = Object.keys(json.components.schemas).filter((name) => !text.includes(`#/components/schemas/${name}"`))
  expect(unused).toEqual(['LiveClientMessage', 'LiveServerMessage'].filter((name) => unused.includes(name)))
  for (const name of NAMED) expect(text, name).toContain(`{"$ref":"#/components/schemas/${name}"`)
})

const NAMED = [
  ...[
    'Activity',
    'Agent',
    'Approval',
    'Board',
    'Event',
    'InputRequest',
    'Key',
    'Message',
    'Run',
    'SavedQuery',
    'Secret',
  ],
  ...[
    'Session',
    'Task',
    'Workspace',
    'Error',
    'StartRun',
    'AppendEvents',
    'InvokeAgent',
    'RunQuery',
    'QueryAnswer',
    'QueryCatalogue',
  ],
]

test('what can be edited has an ETag, and is changed at the version that If-Match names', () => {
  const named = endpoints.filter(({ operation }) => operation.parameters?.some(({ name }) => name === 'If-Match'))
  expect(named.map(({ operation }) => operation.operationId).sort()).toEqual([
    ...[
      'archiveAgent',
      'deleteAlert',
      'deleteBoard',
      'deleteSavedQuery',
      'deleteSecret',
      'deleteView',
      'deleteWebhook',
    ],
    ...['editAgent', 'editAlert', 'editBoard', 'editRun', 'editSavedQuery', 'editWebhook'],
    ...['renameView', 'setSecret', 'setView'],
  ])
  for (const { operation } of named) expect(Object.keys(operation.responses)).toContain('409')
  const answers = endpoints.filter(({ operation }) => 'ETag' in (operation.responses[200]?.headers ?? {}))
  const versioned = named.filter(({ method }) => method !== 'delete')
  expect(answers).toEqual(expect.arrayContaining(versioned))
  // Besides: creating five, reading six, reading and restoring a version of an agent, restoring an archived one, rotating a secret.
  expect(answers).toHaveLength(versioned.length + 5 + 6 + 4)
})

test('WebSocket messages and event stream frames are documented', () => {
  const live = operations.get('openLive')!.operation as Schema
  expect(Object.keys(live['x-websocket'].closeCodes)).toEqual(['1001', '4001', '4003', '4008'])
  const ops = ({ anyOf }: Schema) => anyOf.map((each: Schema) => resolve(json, each).properties.op.const)
  expect(ops(resolve(json, live['x-websocket'].clientMessage))).toEqual(['subscribe', 'unsubscribe', 'ping'])
  const said = ['subscribed', 'activity', 'gap', 'error', 'pong', 'closing']
  expect(ops(resolve(json, live['x-websocket'].serverMessage))).toEqual(said)
  const frames = (id: string) =>
    Object.keys(operations.get(id)!.operation.responses[200].content['text/event-stream']['x-event-stream'])
  expect(frames('streamActivity')).toEqual(['event', 'task', 'run', 'score', 'gap'])
  const output = ['chunk', 'tool', 'done', 'awaiting_approval', 'awaiting_input', 'error']
  for (const id of ['invokeAgent', 'approveCall', 'answerInputRequest', 'streamRunOutput'])
    expect(frames(id)).toEqual(output)
})

test('each operation accepts exactly the documented keys', async () => {
  const { agentId, agentKey } = await newAgent(service.api)
  const keys = { agentKey, workspaceKey: service.workspaceKey, operatorToken: OPERATOR_TOKEN }
  for (const { path, method, operation } of endpoints.filter(hasEnvelope)) {
    const call = (key: string | null) =>
      // No operation accepts this body, so nothing happens whatever the key.
      service.api(
        method.toUpperCase(),
        path.replace('{agent_id}', agentId).replaceAll(/\{\w+\}/g, MISSING),
        method === 'get' ? undefined : [],
        {
          key,
        },
      )
    const named = operation.security!.flatMap(Object.keys)
    const { operationId } = operation
    if (named.length === 0) {
      expect((await call(null)).status, operationId).toBe(200)
      continue
    }
    expect((await call(null)).status, operationId).toBe(401)
    for (const [scheme, key] of Object.entries(keys)) {
      // An accepted key would keep the stream open.
      if (operationId === 'streamActivity' && named.includes(scheme)) continue
      const { status, error } = await call(key)
      const where = `${operationId} with ${scheme}: ${status} ${error?.message}`
      expect(![401, 403].includes(status), where).toBe(named.includes(scheme))
      expect(Object.keys(operation.responses), where).toContain(String(status))
    }
  }
})

const MISSING = '00000000-0000-7000-8000-000000000000'
