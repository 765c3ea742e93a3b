import { expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { untilStatus } from '../support/hosted.ts'
import { callTurn, startBackends } from '../support/hosted-rig.ts'
import { accept, mcpClient } from '../support/mcp-agents.ts'
import { freePort, type SpawnedService, spawnService } from '../support/service.ts'

/** Tasks of the MCP server when the service is killed (docs/mcp.md#hosted-agents-as-tools). */

test('a task survives the death of the service between tasks/get and tasks/update, also one that was just answered', async () => {
  const backends = startBackends()
  const { tool } = backends.tools
  const env = { ...backends.env, PORT: String(freePort()), LOG_LEVEL: 'warn' }
  let service = await spawnService(env)
  const restart = async (before: SpawnedService) => {
    before.kill('SIGKILL')
    await before.exited
    return spawnService({ ...env, DATA_DIR: before.dataDir, BOOTSTRAP_WORKSPACE_KEY: before.workspaceKey })
  }
  const turns = [callTurn(['pay', { n: 1 }]), { text: 'Paid.' }]
  const payer = { name: 'payer', expose: ['mcp'], tools: [tool('pay', { requires_approval: true })] }
  await backends.agent(service, turns, payer)
  await backends.agent(service, [{ text: 'Slow.', delayMs: 3_000 }], { name: 'slow', expose: ['mcp'] })
  const { workspaceKey, url } = service
  const mcp = mcpClient({ url, workspaceKey })
  const asked = async (taskId: string) =>
    Object.keys(
      (
        await eventually(async () => {
          const { result } = await mcp.task(taskId)
          return result?.status === 'input_required' && result
        })
      ).inputRequests,
    )

  const tasks: string[] = []
  for (let n = 0; n < 3; n++) tasks.push((await mcp.call('payer', { input: 'x' })).result.taskId)
  const before = await Promise.all(tasks.map(asked))
  const running: string = (await mcp.call('slow', { input: 'x' })).result.taskId
  service = await restart(service)
  expect(await Promise.all(tasks.map(asked))).toEqual(before)
  const ids = before.map(([id]) => id!)

  // The client that waits, another door, and a decision whose answer is lost with the service.
  await mcp.update(tasks[0]!, { [ids[0]!]: accept({ confirm: true, edited_input: '{"n":2}' }) })
  await service.api('POST', `/api/v1/approvals/${ids[1]}/approve`, { background: true })
  const lost = mcp.update(tasks[2]!, { [ids[2]!]: accept({ confirm: true }) }).catch(() => undefined)
  service = await restart(service)
  await lost
  const repeated = await mcp.update(tasks[2]!, { [ids[2]!]: accept({ confirm: true }) })
  expect(repeated.result).toMatchObject({ resultType: 'complete' })
  const refused = await mcp.update(tasks[1]!, { [ids[1]!]: accept({ confirm: false }) })
  expect(refused.error.data.code).toBe('CONFLICT')
  for (const taskId of [...tasks, running]) {
    await untilStatus(service, taskId, 'completed')
    expect((await mcp.task(taskId)).result.result.content[0].text).toBe(taskId === running ? 'Slow.' : 'Paid.')
  }
  // A call whose answer died with the service is sent again, with the same key.
  const paid = new Map(backends.tools.of('pay').map(({ key, input }) => [key, input.n]))
  expect([...paid.values()].toSorted()).toEqual([1, 1, 2])
})
