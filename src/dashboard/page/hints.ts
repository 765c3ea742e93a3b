import { h } from './dom.ts'

/** Hints for an empty workspace. The user fills in the parts marked with an ellipsis. */
export function noRunsYet(): HTMLElement {
  return h(
    'div',
    { class: 'empty' },
    h('h2', {}, 'No runs yet'),
    h('p', {}, 'Start simulated agents that report to this service. In a second terminal, in the same folder:'),
    command('Start the demo', demoCommand(location.origin)),
    h('p', {}, 'Or report a run of your own: create an agent, mint a key for it, start a run.'),
    command('Report a run', reportCommands(location.origin)),
    seeReference(),
  )
}

export function noAgentsYet(): HTMLElement {
  return h(
    'div',
    { class: 'empty' },
    h('h2', {}, 'No agents yet'),
    h('p', {}, 'The demo creates some:'),
    command('Start the demo', demoCommand(location.origin)),
    h('p', {}, 'Or create the first one yourself:'),
    command('Create an agent', createAgent(location.origin)),
    seeReference(),
  )
}

function demoCommand(origin: string): string {
  return `AGENT_RUN_KEY=svc_ws_… npx --yes bun run demo --url ${origin}`
}

/** The key is written as a variable: a page that showed it would put it into screenshots and shell histories. */
function createAgent(origin: string): string {
  return `curl ${origin}/api/v1/agents \\
  -H "Authorization: Bearer $AGENT_RUN_KEY" \\
  -H 'Content-Type: application/json' \\
  -d '{"name": "my first agent"}'`
}

function reportCommands(origin: string): string {
  return `export AGENT_RUN_KEY=svc_ws_…      # the key you have opened this page with

${createAgent(origin)}

export AGENT_ID=…                  # agent_id of the answer
curl ${origin}/api/v1/agents/$AGENT_ID/keys \\
  -H "Authorization: Bearer $AGENT_RUN_KEY" \\
  -H 'Content-Type: application/json' \\
  -d '{}'

export AGENT_KEY=svc_agent_…       # key of the answer
curl ${origin}/api/ingest/v1/run/start \\
  -H "Authorization: Bearer $AGENT_KEY" \\
  -H 'Content-Type: application/json' \\
  -d "{\\"agent_id\\": \\"$AGENT_ID\\"}"`
}

function command(label: string, text: string): HTMLElement {
  return h('pre', { tabindex: '0', 'aria-label': label }, text)
}

function seeReference(): HTMLElement {
  return h('p', {}, 'All calls are described in the ', h('a', { href: '/docs' }, 'API reference'), '.')
}
