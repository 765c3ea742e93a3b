import { expect, test } from 'bun:test'
import { type ConformanceCheck, runConformance } from '../support/mcp-conformance.ts'
import { startTestService } from '../support/service.ts'

/** The official conformance suite of the Model Context Protocol. The scenarios of tasks are in the tests of agents. */

/** Those that need no tools made for the suite. */
const SCENARIOS = [
  'server-initialize',
  'server-stateless',
  'ping',
  'tools-list',
  'resources-list',
  'prompts-list',
  'sep-2164-resource-not-found',
  'dns-rebinding-protection',
  'caching',
  'http-header-validation',
  'input-required-result-missing-input-response',
  'input-required-result-unsupported-methods',
  'input-required-result-ignore-extra-params',
  'input-required-result-validate-input',
]

test('the MCP server conforms to the protocol, in both eras', async () => {
  const service = await startTestService()
  const checks = await runConformance(service.url, service.workspaceKey)
  const shown = ({ scenario, id, errorMessage = '' }: ConformanceCheck) => `${scenario} ${id}: ${errorMessage}`
  const failed = checks.filter(({ status }) => status === 'FAILURE')
  // Single checks of a scenario may need such a tool, too.
  const wrong = failed.filter(
    ({ scenario, errorMessage }) => SCENARIOS.includes(scenario) && !errorMessage?.startsWith('Not testable'),
  )
  expect(wrong.map(shown)).toEqual([])
  for (const scenario of SCENARIOS) {
    const succeeded = checks.filter((check) => check.scenario === scenario && check.status === 'SUCCESS')
    expect([scenario, succeeded.length > 0]).toEqual([scenario, true])
  }
  // Each scenario checks all messages of the server against the schema of the protocol.
  const onTheWire = checks.filter(({ id }) => id === 'wire-schema-valid')
  expect(onTheWire.length).toBeGreaterThan(50)
  expect(onTheWire.filter(({ status }) => status !== 'SUCCESS').map(shown)).toEqual([])
})
