import { beforeAll, expect, test } from 'bun:test'
import { ROLES } from '../../src/tenants/keys/schema.ts'
import { ADA, BOB, EVE, startPeople } from '../support/people.ts'
import { type Document, type Endpoint, readDocument, targetOf } from './document.ts'

/**
 * Which role a person needs for each operation (docs/people.md#roles). A new operation has to be added here: who may
 * call it is decided, not overlooked.
 */
const OPERATIONS = {
  anybody: 'clickHouseGet clickHousePing getHealth getLimits getMetrics getReadiness getSignIn',
  viewer: `changeWorkspace getAgent getAgentVersion getAlert getApproval getBoard getErasure getInputRequest getQuerySchema getRun
    getSavedQuery getSession getUser getWebhook getWorkspace listAgents listAgentVersions listAlerts listAlertTemplates
    listApprovals listBoards listChildren listEvents listInputRequests listKeys listPauses listPeople listRuns
    listSavedQueries listScores listSecrets listSessionMessages listSessions listTasks listViews listWebhookDeliveries
    listWebhooks openLive pollWebhook readConversation runQuery runSavedQuery signOut streamActivity streamRun streamRunOutput testAlert
    testAlertDefinition`,
  approver: 'addRunScore answerInputRequest approveCall cancelRun rejectCall',
  admin: `archiveAgent createAgent createAgentKey createAlert createBoard createSavedQuery createWebhook createWorkspaceKey
    deleteAlert deleteBoard deleteRun deleteSavedQuery deleteScore deleteSecret deleteSession deleteView deleteWebhook editAgent editAlert
    editBoard editPerson editRun editSavedQuery editWebhook getPerson invokeAgent recountUsage recoverWebhook renameView
    resendWebhookDelivery restoreAgent restoreAgentVersion revokeKey revokeSignIn rotateKey rotateWebhookSecret setSecret
    setView testWebhook`,
  /** For keys, feed tokens, and the operator. */
  nobody: `addScores appendEvents clickHousePost completeRun createFeedToken createOwnerKey createWorkspace editWorkspace
    eraseWorkspace exportLogs exportMetrics exportTraces failRun getCluster ingestLangfuseBatch ingestOpenAiTraces
    listWorkspaces reportTask startRun`,
}

const NO_ID = '00000000-0000-7000-8000-000000000000'
let url = ''
let document: Document
/** The headers of somebody who is not signed in, and of each role. */
const callers: Record<string, string>[] = [{}]

beforeAll(async () => {
  const rig = await startPeople()
  url = rig.service.url
  for (const account of [EVE, BOB, ADA]) callers.push((await rig.signedIn(account)).feedOptions.headers)
  document = await readDocument(rig.service)
})

/**
 * Makes a call that changes nothing: its body is not valid JSON, and its ids are those of nothing.
 * @returns why the caller may not make it; undefined if they may
 */
async function refusal(headers: Record<string, string>, endpoint: Endpoint): Promise<string | undefined> {
  const method = endpoint.method.toUpperCase()
  const response = await fetch(url + targetOf(endpoint, Array(2).fill(NO_ID)), {
    method,
    headers: { ...headers, 'content-type': 'application/json' },
    ...(method !== 'GET' && { body: '{' }),
  })
  if (response.status === 401 || response.status === 403)
    return /"reason":"(\w+)"/.exec(await response.text())?.[1] ?? 'in the form of another program'
  await response.body?.cancel()
  return undefined
}

test('the role that each operation needs', async () => {
  const found = Object.fromEntries(Object.keys(OPERATIONS).map((who) => [who, [] as string[]]))
  for (const [operationId, endpoint] of document.operations) {
    const refusals = await Promise.all(callers.map((headers) => refusal(headers, endpoint)))
    const lowest = refusals.indexOf(undefined)
    found[['nobody', 'anybody', ...ROLES][lowest + 1]!]!.push(operationId)
    // Each role includes those before it, and who lacks one is told so.
    const expected = refusals.map((reason, at) => (at >= lowest ? undefined : at === 0 ? reason : 'role_too_low'))
    if (lowest >= 0) expect([operationId, ...refusals]).toEqual([operationId, ...expected])
  }
  const listed = Object.entries(OPERATIONS).map(([who, names]) => [who, names.split(/\s+/)])
  const sorted = (groups: Record<string, string[]>) =>
    Object.fromEntries(Object.entries(groups).map(([who, names]) => [who, names.sort()]))
  expect(sorted(found)).toEqual(sorted(Object.fromEntries(listed)))
})
