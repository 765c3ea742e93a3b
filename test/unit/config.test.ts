import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { parseConfig } from '../../src/service/config/config.ts'
import { ConfigError } from '../../src/service/config/reader.ts'
import { DEFAULT_QUERY_CAPS } from '../../src/sql/analytics/query-caps.ts'
import { mintToken } from '../../src/tenants/keys/token.ts'

function problemsOf(env: Record<string, string>): readonly string[] {
  try {
    parseConfig(env, '/')
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  return []
}

test('an empty environment gives the documented defaults', () => {
  expect(parseConfig({}, '/somewhere')).toEqual({
    port: 3000,
    host: '127.0.0.1',
    publicUrl: undefined,
    dataDir: '/somewhere/data',
    databaseUrl: undefined,
    clickhouseUrl: undefined,
    clickhouseCluster: undefined,
    cluster: undefined,
    workers: 1,
    partitions: 12,
    operatorToken: undefined,
    guessing: { operatorTokensPerMinute: 10, unknownKeysPerMinute: 300 },
    people: undefined,
    trustedProxies: [],
    bootstrapWorkspaceKey: undefined,
    logLevel: 'info',
    limits: {
      body_bytes: 10_485_760,
      events_per_call: 5_000,
      event_payload_bytes: 524_288,
      run_input_bytes: 3_145_728,
      run_output_bytes: 10_485_760,
      prompt_length: 1_000_000,
      type_length: 200,
      task_name_length: 200,
      external_id_length: 255,
      tags: 20,
      tag_length: 128,
      json_depth: 128,
      otlp_bytes: 67_108_864,
      otlp_agents: 1_000,
    },
    rateLimits: {
      ingestRequestsPerMinute: 60_000,
      eventsPerSecond: 100_000,
      invokesPerMinute: 600,
      readsPerMinute: 3_000,
      queriesPerMinute: 300,
    },
    eventRetentionDays: undefined,
    feedOrigins: undefined,
    feeds: {
      connections: 50_000,
      connectionsGiven: false,
      filtersPerWorkspace: 10_000,
      connectionsPerWorkspace: 10_000,
      slowConsumerMs: 10_000,
      heartbeatMs: 8_000,
    },
    queries: {
      atOnce: 3,
      seconds: 10,
      memoryBytes: 1024 ** 3,
      rows: 10_000,
      resultBytes: 32 * 1024 ** 2,
      streamBytes: 4 * 1024 ** 3,
      streamSeconds: 600,
      penaltySeconds: 30,
    },
    hosted: {
      openAiApiKey: undefined,
      openAiBaseUrl: undefined,
      modelPrices: {},
      egressAllow: expect.anything(),
      secretsKey: undefined,
      runsAtOnce: 1_000,
      runsAtOncePerWorkspace: 600,
      queuedRuns: 10_000,
      waitMs: 900_000,
      pauseMs: null,
    },
    journalMaxBytes: 16 * 1024 ** 3,
    journalKeepBytes: 1024 ** 3,
    bodyTimeoutMs: 30_000,
    idleSeconds: 30,
    bodyBytesInFlight: 512 * 1024 ** 2,
  })
})

test('reads every variable', () => {
  const key = mintToken('workspace').text
  const config = parseConfig({
    PORT: '0',
    HOST: '::1',
    DATA_DIR: '/x',
    DATABASE_URL: 'postgresql://u:p@h:1/db',
    CLICKHOUSE_URL: 'https://h:8443',
    OPERATOR_TOKEN: 'sixteen-letters!',
    BOOTSTRAP_WORKSPACE_KEY: key,
    LOG_LEVEL: 'silent',
    LIMIT_EVENTS_PER_CALL: '7',
    RATE_LIMIT_READS_PER_MINUTE: '0',
    JOURNAL_MAX_BYTES: '1000000000',
    EVENT_RETENTION_DAYS: '30',
  })
  expect(config).toMatchObject({ port: 0, host: '::1', dataDir: '/x', databaseUrl: 'postgresql://u:p@h:1/db' })
  expect(config).toMatchObject({
    clickhouseUrl: 'https://h:8443',
    operatorToken: 'sixteen-letters!',
    bootstrapWorkspaceKey: key,
  })
  expect(config).toMatchObject({ logLevel: 'silent', journalMaxBytes: 1e9 })
  expect(config.limits.events_per_call).toBe(7)
  expect(config.eventRetentionDays).toBe(30)
  expect(config.rateLimits.readsPerMinute).toBe(0)
})

test('treats an empty variable as unset', () => {
  const text = (env: Record<string, string>) => JSON.stringify(parseConfig(env, '/'))
  expect(text({ PORT: '', DATABASE_URL: ' ', NATS_URL: '', EGRESS_ALLOW: ' ', SECRETS_KEY: '' })).toBe(text({}))
})

test('reports every problem at once, by the name of its variable', () => {
  expect(problemsOf({ PORT: '70000', LOG_LEVEL: 'loud', DATABASE_URL: 'mysql://h', LIMIT_TAGS: '-1' })).toEqual([
    'LIMIT_TAGS must be a whole number from 0 to 1000; got "-1"',
    'PORT must be a whole number from 0 to 65535; got "70000"',
    'LOG_LEVEL must be one of debug, info, warn, error, silent; got "loud"',
    'DATABASE_URL must be a URL that begins with postgres:// or postgresql://',
  ])
})

test('the bodies in flight fit the largest body, sent and inflated, within one workspace', () => {
  expect(parseConfig({ LIMIT_BODY_BYTES: '268435456' }, '/').bodyBytesInFlight).toBe(1024 ** 3)
})

test('QUERY_CAPS sets some caps, and the others keep their defaults', () => {
  const { queries } = parseConfig({ QUERY_CAPS: '{"seconds": 60, "at_once": 8, "penalty_seconds": 0}' }, '/')
  expect(queries).toEqual({ ...DEFAULT_QUERY_CAPS, seconds: 60, atOnce: 8, penaltySeconds: 0 })
  expect(problemsOf({ QUERY_CAPS: '60' })).toEqual(['QUERY_CAPS must be a JSON object of whole numbers'])
  expect(problemsOf({ QUERY_CAPS: '{"rows": "many", "minutes": 1}' })).toEqual([
    'QUERY_CAPS has no member "minutes"; it has at_once, seconds, memory_bytes, rows, result_bytes, stream_bytes, stream_seconds, penalty_seconds',
    'QUERY_CAPS.rows must be a whole number from 1 to 1000000; got "many"',
  ])
})

test('the guide lists every variable, and no other', async () => {
  const names = new Set<string>()
  const record = (_: object, name: string | symbol) => void names.add(String(name))
  parseConfig(new Proxy({}, { get: record }), '/')
  // Those of a cluster are read if there is one.
  names.add('NATS_REPLICAS')
  expect(names.size).toBeLessThanOrEqual(50)
  const guide = await Bun.file(join(import.meta.dir, '..', '..', 'docs', 'operations.md')).text()
  const [, section = ''] = /^## Configuration$([\s\S]*?)^## /m.exec(guide) ?? []
  const firstColumn = [...section.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, cell = '']) => cell.match(/[A-Z_]+/g) ?? [])
  expect([...firstColumn].sort()).toEqual([...names].sort())
})

test('a cluster needs stores and a secret that all nodes share', () => {
  expect(problemsOf({ NATS_URL: 'nats://a, http://b' })).toEqual([
    'NATS_URL must be comma-separated URLs that begin with nats:// or tls://',
    'DATABASE_URL must be set together with NATS_URL: all nodes share it',
    'CLICKHOUSE_URL must be set together with NATS_URL: all nodes share it',
    'CLUSTER_SECRET must be set together with NATS_URL: all nodes share it',
  ])
  expect(problemsOf({ CLUSTER_SECRET: 'x'.repeat(16), JOURNAL_PARTITIONS: '4' })).toEqual([
    'JOURNAL_PARTITIONS needs WORKERS or NATS_URL',
    'CLUSTER_SECRET needs NATS_URL',
  ])
})

test('several workers share a machine without NATS', () => {
  expect(parseConfig({ WORKERS: '4', JOURNAL_PARTITIONS: '8' }, '/')).toMatchObject({ workers: 4, partitions: 8 })
  expect(problemsOf({ WORKERS: '65' })).toEqual(['WORKERS must be a whole number from 1 to 64; got "65"'])
  const cluster = {
    NATS_URL: 'nats://a',
    DATABASE_URL: 'postgres://p',
    CLICKHOUSE_URL: 'http://c',
    CLUSTER_SECRET: 'x'.repeat(16),
  }
  expect(problemsOf({ ...cluster, WORKERS: '2' })).toEqual([
    'WORKERS cannot be set together with NATS_URL: start more nodes instead',
  ])
})

test('keeps three copies of a log if there are three NATS servers, unless NATS_REPLICAS says otherwise', () => {
  const shared = {
    DATABASE_URL: 'postgres://p',
    CLICKHOUSE_URL: 'http://c',
    CLUSTER_SECRET: 'a shared secret!'.replaceAll(' ', '-'),
  }
  const clusterOf = (env: Record<string, string>) => parseConfig({ ...shared, ...env }, '/').cluster
  expect(clusterOf({ NATS_URL: 'nats://a' })).toEqual({
    natsUrls: ['nats://a'],
    secret: 'a-shared-secret!',
    instanceUrl: undefined,
    natsReplicas: 1,
  })
  const three = { NATS_URL: 'nats://a,nats://b,nats://c', INSTANCE_URL: 'http://one:3000/' }
  expect(clusterOf(three)).toMatchObject({ natsReplicas: 3, instanceUrl: 'http://one:3000' })
  expect(clusterOf({ ...three, NATS_REPLICAS: '1' })?.natsReplicas).toBe(1)
})

test.each(['0', '-1', '1.5', 'forever', '36501'])('rejects EVENT_RETENTION_DAYS=%s', (value) => {
  expect(problemsOf({ EVENT_RETENTION_DAYS: value })).toEqual([
    `EVENT_RETENTION_DAYS must be a whole number from 1 to 36500; got "${value}"`,
  ])
})

test.each(['1e3', '3000.5', '0x10', ' 30 00', 'NaN', '-0'])('rejects PORT=%s', (value) => {
  expect(problemsOf({ PORT: value })).toHaveLength(1)
})

test('rejects a bootstrap key with a wrong checksum or of an agent, without repeating it', () => {
  const { text } = mintToken('workspace')
  const wrong = `${text.slice(0, -1)}${text.endsWith('0') ? '1' : '0'}`
  for (const key of [wrong, mintToken('agent').text, 'secret']) {
    const [problem] = problemsOf({ BOOTSTRAP_WORKSPACE_KEY: key })
    expect(problem).toStartWith('BOOTSTRAP_WORKSPACE_KEY must be svc_ws_')
    expect(problem).not.toContain(key)
  }
})

test('rejects an operator token that looks like an API key or cannot be sent in a header', () => {
  expect(problemsOf({ OPERATOR_TOKEN: mintToken('workspace').text })).toHaveLength(1)
  expect(problemsOf({ OPERATOR_TOKEN: 'two words of many letters' })).toHaveLength(1)
  expect(problemsOf({ OPERATOR_TOKEN: 'fifteen-letters' })).toEqual([
    'OPERATOR_TOKEN must be at least 16 characters of printable ASCII that do not begin with svc_',
  ])
  expect(problemsOf({ TRUSTED_PROXIES: '10.0.0.0/8, ::1, 10.0.0.0/33' })).toEqual([
    'TRUSTED_PROXIES must be comma-separated addresses and CIDRs; got "10.0.0.0/33"',
  ])
})

test('a cluster needs a ClickHouse of its own, and its name or a macro', () => {
  const CLICKHOUSE_URL = 'http://h:8123'
  expect(parseConfig({ CLICKHOUSE_URL, CLICKHOUSE_CLUSTER: 'main-1' }, '/').clickhouseCluster).toBe('main-1')
  expect(parseConfig({ CLICKHOUSE_URL, CLICKHOUSE_CLUSTER: '{cluster}' }, '/').clickhouseCluster).toBe('{cluster}')
  expect(problemsOf({ CLICKHOUSE_CLUSTER: 'main' })).toEqual([
    'CLICKHOUSE_CLUSTER needs CLICKHOUSE_URL: the embedded ClickHouse is a single server',
  ])
  for (const name of ["it's", 'a b', '{cluster'])
    expect(problemsOf({ CLICKHOUSE_URL, CLICKHOUSE_CLUSTER: name })).toEqual([
      'CLICKHOUSE_CLUSTER must be the name of a cluster, or a macro such as {cluster}',
    ])
})

test('a limit on a part cannot exceed the limit on the body', () => {
  expect(problemsOf({ LIMIT_BODY_BYTES: '2048', LIMIT_EVENT_PAYLOAD_BYTES: '4096' })).toEqual([
    'LIMIT_EVENT_PAYLOAD_BYTES is more than LIMIT_BODY_BYTES (2048)',
  ])
  expect(parseConfig({ LIMIT_BODY_BYTES: '2048' }, '/').limits).toMatchObject({
    run_output_bytes: 2048,
    type_length: 200,
  })
})

describe('hosted agents', () => {
  test('read all their variables', () => {
    const key = 'ab'.repeat(32)
    const { hosted } = parseConfig({
      OPENAI_API_KEY: 'sk-x',
      OPENAI_BASE_URL: 'http://localhost:11434/v1',
      MODEL_PRICES: '{"m*": {"input": 1, "output": 2.5}}',
      EGRESS_ALLOW: 'localhost, 10.0.0.0/8',
      SECRETS_KEY: key,
      HOSTED_RUNS_AT_ONCE: '7',
      PAUSE_EXPIRES_SECONDS: '60',
    })
    expect(hosted).toMatchObject({ openAiApiKey: 'sk-x', openAiBaseUrl: 'http://localhost:11434/v1' })
    expect(hosted).toMatchObject({ runsAtOnce: 7, pauseMs: 60_000, modelPrices: { 'm*': { input: 1, output: 2.5 } } })
    expect(Buffer.from(hosted.secretsKey!).toString('hex')).toBe(key)
    expect(hosted.egressAllow.hasHost('localhost', 80)).toBe(true)
  })

  test('cannot reach a private host unless it is listed', () => {
    expect(parseConfig({}, '/').hosted.egressAllow.hasHost('localhost', 80)).toBe(false)
  })

  test.each<[string, string, string]>([
    ['OPENAI_API_KEY', 'sk two words', 'must be printable ASCII without spaces'],
    ['OPENAI_BASE_URL', 'localhost:11434', 'must be a URL that begins with http:// or https://'],
    ['MODEL_PRICES', 'gpt-5=1', 'must be a JSON object like {"gpt-5": {"input": 1.25, "output": 10}}'],
    ['MODEL_PRICES', '{"m": {"input": -1, "output": 1}}', 'must be a JSON object like'],
    ['EGRESS_ALLOW', 'localhost,10.0.0.0/40', 'has the entry "10.0.0.0/40": expected hosts'],
    ['SECRETS_KEY', 'too-short-a-secret', 'must be 32 bytes as base64 or as 64 hexadecimal digits'],
    ['HOSTED_RUNS_AT_ONCE', '0', 'must be a whole number from 1 to 100000'],
    ['PAUSE_EXPIRES_SECONDS', '0', 'must be a whole number from 1 to '],
  ])('reject %s=%s', (name, value, problem) => {
    const problems = problemsOf({ [name]: value })
    expect(problems).toHaveLength(1)
    expect(problems[0]).toStartWith(`${name} ${problem}`)
    if (/KEY|URL/.test(name)) expect(problems[0]).not.toContain(value)
  })
})

test('the configuration is immutable', () => {
  const config = parseConfig({}, '/')
  expect(Object.isFrozen(config)).toBe(true)
  expect(Object.isFrozen(config.limits)).toBe(true)
})

describe('signing in', () => {
  const needed = { OIDC_ISSUER: 'https://id.example', OIDC_CLIENT_ID: 'a', OIDC_CLIENT_SECRET: 'b' }

  test('has defaults for all but the provider and its client', () => {
    expect(parseConfig(needed).people).toEqual({
      issuer: 'https://id.example',
      clientId: 'a',
      clientSecret: 'b',
      publicUrl: 'http://localhost:3000',
      scopes: 'openid profile email',
      roleClaim: 'roles',
      roles: new Map([
        ['viewer', 'viewer'],
        ['approver', 'approver'],
        ['admin', 'admin'],
      ]),
      workspace: undefined,
      workspaceClaim: undefined,
      sessionMs: 43_200_000,
      idleSeconds: 7_200,
      takesKeys: true,
    })
  })

  test('takes options as JSON', () => {
    const OIDC_OPTIONS = '{"role_claim": "groups", "roles": {"sre": "admin", "*": "viewer"}, "page_keys": false}'
    const { people } = parseConfig({ ...needed, OIDC_OPTIONS, PUBLIC_URL: 'https://agents.example' })
    expect(people).toMatchObject({
      publicUrl: 'https://agents.example',
      roleClaim: 'groups',
      idleSeconds: 7_200,
      takesKeys: false,
    })
    // No role by its own name beside them.
    expect([...people!.roles]).toEqual([
      ['sre', 'admin'],
      ['*', 'viewer'],
    ])
  })

  test('reports what is missing, unsafe or wrong', () => {
    expect(problemsOf({ OIDC_CLIENT_ID: 'a', PUBLIC_URL: 'https://agents.example' })).toEqual([
      'OIDC_CLIENT_ID needs OIDC_ISSUER',
    ])
    // Links of webhooks need it, too.
    expect(parseConfig({ PUBLIC_URL: 'https://agents.example' })).toMatchObject({ publicUrl: 'https://agents.example' })
    expect(problemsOf({ PUBLIC_URL: 'https://a.example, https://b.example' })).toEqual([
      'PUBLIC_URL must be one origin',
    ])
    expect(problemsOf({ OIDC_ISSUER: 'http://id.example', HOST: '0.0.0.0' })).toEqual([
      'OIDC_ISSUER must begin with https:// unless the provider runs on this machine',
      'OIDC_CLIENT_ID must be set together with OIDC_ISSUER',
      'OIDC_CLIENT_SECRET must be set together with OIDC_ISSUER',
      'PUBLIC_URL must be set together with OIDC_ISSUER, unless the service listens on this machine only',
    ])
    expect(problemsOf({ ...needed, PUBLIC_URL: 'http://agents.example' })).toEqual([
      'PUBLIC_URL must begin with https:// unless it is an address of this machine',
    ])
    const optionsProblem = (options: string) => problemsOf({ ...needed, OIDC_OPTIONS: options })[0]
    expect(optionsProblem('[]')).toBe('OIDC_OPTIONS must be a JSON object')
    expect(optionsProblem('{"rolls": {}}')).toStartWith('OIDC_OPTIONS has a wrong member "rolls"')
    expect(optionsProblem('{"roles": {"sre": "root"}}')).toStartWith('OIDC_OPTIONS has a wrong member "roles.sre"')
    const both = `{"workspace": "${crypto.randomUUID()}", "workspace_claim": "w"}`
    expect(optionsProblem(both)).toBe('OIDC_OPTIONS may have one of workspace and workspace_claim, not both')
  })
})
