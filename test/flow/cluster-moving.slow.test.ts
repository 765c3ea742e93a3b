import { test } from 'bun:test'
import { startCluster } from '../support/cluster.ts'
import { hasNats } from '../support/nats.ts'
import { startTestService } from '../support/service.ts'
import { expectRunsGoOn } from './shared-partitions.ts'

test.skipIf(!hasNats)(
  'a service with a local journal becomes a cluster on the same stores: its runs go on',
  async () => {
    const single = await startTestService()
    await expectRunsGoOn(single, async () => {
      await single.stop()
      const { databaseUrl, clickhouseUrl: CLICKHOUSE_URL, workspaceKey: BOOTSTRAP_WORKSPACE_KEY } = single
      const { nodes } = await startCluster({ nodes: 1, databaseUrl, env: { CLICKHOUSE_URL, BOOTSTRAP_WORKSPACE_KEY } })
      return nodes[0].api
    })
  },
)
