import { join } from 'node:path'
import { freePorts } from '../../../support/processes.ts'
import { temporaryDirectory } from '../../../support/teardown.ts'
import { debianProgram } from '../install.ts'
import { answers, startPeerProcess } from '../process.ts'
import { type AppendPeer, connectionPlans } from './appender.ts'
import { callsOf, type EventRecord } from './events.ts'

const TABLE = `create table events (run_id String, type String, level String, payload String, occurred_at DateTime)
  engine = MergeTree order by (run_id, occurred_at)`
const INSERT = 'insert into events format JSONEachRow'

/** ClickHouse's server, of the version that Debian has. Each call inserts a part of its own. */
export const clickhouse: AppendPeer = {
  name: 'clickhouse',
  async start(cache) {
    const { path, env } = await debianProgram(cache, 'clickhouse-server')
    const [port, tcpPort] = freePorts(2) as [number, number]
    const cwd = await temporaryDirectory()
    await Bun.write(join(cwd, 'config.xml'), configOf(cwd, port, tcpPort))
    await Bun.write(join(cwd, 'users.xml'), USERS)
    const url = `http://127.0.0.1:${port}/`
    const command = [path, `--config-file=${join(cwd, 'config.xml')}`]
    const server = await startPeerProcess(command, { cwd, env, isReady: () => answers(`${url}ping`) })
    const ask = async (statement: string) => {
      const response = await fetch(url, { method: 'POST', body: statement })
      const text = await response.text()
      if (!response.ok) throw new Error(text)
      return text.trim()
    }
    await ask(TABLE)
    const way = (eventsPerCall: number) => ({
      name: 'INSERT over HTTP, JSONEachRow',
      eventsPerCall,
      plan: (connections: number) => ({
        protocol: 'http' as const,
        target: { port },
        connections: connectionPlans(connections, (index) => callsOf(index, eventsPerCall).map(requestOf)),
      }),
    })
    return {
      title: `ClickHouse ${await ask('select version()')} (2018)`,
      durability: 'written, **not synced** before the acknowledgement (fsync_after_insert came with 20.10)',
      sql: 'at once',
      ways: [way(100), way(1)],
      stored: async () => Number(await ask('select count() from events')),
      stop: server.stop,
    }
  },
}

function requestOf(records: readonly EventRecord[]): Buffer {
  const rows = records.map(({ payload, occurred_at, ...rest }) =>
    JSON.stringify({
      ...rest,
      payload: JSON.stringify(payload),
      occurred_at: occurred_at.slice(0, 19).replace('T', ' '),
    }),
  )
  const body = Buffer.from(rows.join('\n'))
  const head =
    `POST /?query=${encodeURIComponent(INSERT)} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: keep-alive\r\n` +
    `Content-Length: ${body.length}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), body])
}

/** What it requires; everything else is its default. */
function configOf(directory: string, port: number, tcpPort: number): string {
  return `<yandex>
  <logger><level>error</level><log>${directory}/log</log><errorlog>${directory}/errors</errorlog></logger>
  <http_port>${port}</http_port><tcp_port>${tcpPort}</tcp_port><listen_host>127.0.0.1</listen_host>
  <path>${directory}/data/</path><tmp_path>${directory}/tmp/</tmp_path><users_config>${directory}/users.xml</users_config>
  <default_profile>default</default_profile><default_database>default</default_database>
  <mark_cache_size>268435456</mark_cache_size><keep_alive_timeout>60</keep_alive_timeout>
</yandex>
`
}

const USERS = `<yandex>
  <profiles><default/></profiles><quotas><default/></quotas>
  <users><default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users>
</yandex>
`
