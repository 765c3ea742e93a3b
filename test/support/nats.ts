import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { jetstreamManager, type StreamInfo } from '@nats-io/jetstream'
import { connect, type Msg, type NatsConnection } from '@nats-io/transport-node'
import { isOldNats, versionIn } from '../../src/stores/journal/nats/version.ts'
import { eventually } from './eventually.ts'
import { freePorts } from './processes.ts'
import { atEnd, temporaryDirectory } from './teardown.ts'

/** Tests that need it are skipped otherwise, which `bun run test` says at its end. */
export const hasNats = Bun.which('nats-server') !== null

/** As docs/cluster.md recommends; servers before 2.10 do not know the setting. */
function syncSetting(): string {
  const { stdout } = spawnSync('nats-server', ['--version'], { encoding: 'utf8' })
  return isOldNats(versionIn(stdout)) ? '' : 'jetstream { sync_interval: always }\n'
}

/** A `nats-server` process with JetStream, on loopback. */
export class NatsServer {
  private process: ChildProcess | undefined

  constructor(
    readonly name: string,
    readonly port: number,
    private readonly args: readonly string[],
  ) {}

  async start(): Promise<void> {
    const started = spawn('nats-server', [...this.args], { stdio: 'ignore' })
    this.process = started
    await eventually(() => isListening(this.port))
  }

  /** Ends the process at once, as a power failure would. */
  async kill(): Promise<void> {
    const { process } = this
    if (process === undefined || process.exitCode !== null || process.signalCode !== null) return
    const exited = new Promise((resolve) => process.once('exit', resolve))
    process.kill('SIGKILL')
    await exited
  }

  /** Stops the process without ending it. */
  pause(): void {
    this.process?.kill('SIGSTOP')
  }

  resume(): void {
    this.process?.kill('SIGCONT')
  }
}

/** Starts one server, which ends after all tests. @param maxPayload the largest message */
export async function natsServer(maxPayload = 1024 * 1024): Promise<NatsServer> {
  const [port] = freePorts(1)
  const dir = await temporaryDirectory()
  const config = join(dir, 'nats.conf')
  await writeFile(config, `max_payload: ${maxPayload}\n${syncSetting()}`)
  const server = new NatsServer('n0', port, ['-c', config, '-a', '127.0.0.1', '-p', `${port}`, '-js', '-sd', dir])
  atEnd(() => server.kill())
  await server.start()
  return server
}

/** Starts three servers that form a cluster. */
export async function natsCluster(): Promise<NatsServer[]> {
  const ports = freePorts(6)
  const routes = ports.slice(3).map((port) => `nats://127.0.0.1:${port}`)
  const dir = await temporaryDirectory()
  const config = join(dir, 'nats.conf')
  await writeFile(config, syncSetting())
  const servers = [0, 1, 2].map((index) => {
    const cluster = ['--cluster_name', 'test', '--cluster', routes[index], '--routes', routes.join(',')]
    const own = ['-n', `n${index}`, '-a', '127.0.0.1', '-p', `${ports[index]}`, '-js', '-sd', join(dir, `n${index}`)]
    return new NatsServer(`n${index}`, ports[index], ['-c', config, ...own, ...cluster])
  })
  for (const server of servers) {
    atEnd(() => server.kill())
    await server.start()
  }
  const nc = await natsConnection(servers)
  // The cluster has elected a leader.
  await eventually(async () => (await jetstreamManager(nc)).getAccountInfo())
  await nc.close()
  return servers
}

/** A connection as the service makes it. It is closed after all tests. */
export async function natsConnection(
  servers: readonly { readonly port: number }[],
  options: { readonly randomize?: boolean } = {},
): Promise<NatsConnection> {
  const nc = await connect({
    servers: servers.map(({ port }) => `127.0.0.1:${port}`),
    noRandomize: options.randomize !== true,
    noAsyncTraces: true,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 50,
    pingInterval: 1_000,
    maxPingOut: 2,
  })
  atEnd(() => nc.close())
  return nc
}

async function isListening(port: number): Promise<boolean> {
  const socket = await Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } }).catch(() => undefined)
  socket?.end()
  return socket !== undefined
}

/**
 * A connection whose stream seems to have a leader that has just been elected and still stores what the earlier one had
 * acknowledged. The first `truthfulInfos` infos of the stream are correct; the next `laggingAnswers` answers (infos and
 * messages) hide the newest message; after that, all are correct.
 */
export function laggingLeader(
  nc: NatsConnection,
  stream: string,
  laggingAnswers: number,
  truthfulInfos = 1,
): NatsConnection {
  let infos = 0
  let left = laggingAnswers
  const request: Request = async (subject, payload, options) => {
    const isInfo = subject === `$JS.API.STREAM.INFO.${stream}`
    const isGet = subject === `$JS.API.STREAM.MSG.GET.${stream}`
    const isTrue = infos < truthfulInfos
    if (isInfo) infos++
    if ((!isInfo && !isGet) || isTrue || left-- <= 0) return nc.request(subject, payload, options)
    const { state } = (await nc.request(`$JS.API.STREAM.INFO.${stream}`, '')).json<StreamInfo>()
    if (isInfo)
      return changed(await nc.request(subject, payload, options), { state: { ...state, last_seq: state.last_seq - 1 } })
    const { seq } = JSON.parse(new TextDecoder().decode(payload as Uint8Array))
    return nc.request(subject, JSON.stringify({ seq: seq === state.last_seq ? seq + 1 : seq }), options)
  }
  return requesting(nc, request)
}

/**
 * A connection whose stream, for some infos after the first `truthfulInfos`, has another time of creation.
 * @param asked called for each info
 */
export function restartedServer(
  nc: NatsConnection,
  stream: string,
  wrongInfos: number,
  truthfulInfos: number,
  asked: () => void,
): NatsConnection {
  let infos = 0
  return requesting(nc, async (subject, payload, options) => {
    const message = await nc.request(subject, payload, options)
    if (subject !== `$JS.API.STREAM.INFO.${stream}`) return message
    asked()
    const isWrong = ++infos > truthfulInfos && infos <= truthfulInfos + wrongInfos
    return isWrong ? changed(message, { created: new Date().toISOString() }) : message
  })
}

type Request = NatsConnection['request']

function requesting(nc: NatsConnection, request: Request): NatsConnection {
  return new Proxy(nc, {
    get(target, name) {
      if (name === 'request') return request
      const value = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

function changed(message: Msg, change: Partial<StreamInfo>): Msg {
  const data = new TextEncoder().encode(JSON.stringify({ ...message.json<StreamInfo>(), ...change }))
  return Object.create(message, { data: { value: data } })
}
