import { script } from '../../../base/script.ts'
import { CopyButton } from './controls.tsx'
import { Scrollable } from './scrollable.tsx'

/** Hints for an empty workspace. The user fills in the parts marked with an ellipsis. */
export function noRunsYet() {
  return (
    <div class="panel hints">
      <h2>No runs yet</h2>
      <p>Start simulated agents that report to this service. In a second terminal, in the same folder:</p>
      <Command label="Start the demo" text={demoCommand(location.origin)} />
      <p>Or report a run of your own: create an agent, mint a key for it, start a run.</p>
      <Command label="Report a run" text={reportCommands(location.origin)} />
      <Reference />
    </div>
  )
}

export function noAgentsYet() {
  return (
    <div class="panel hints">
      <h2>No agents yet</h2>
      <p>The demo creates some:</p>
      <Command label="Start the demo" text={demoCommand(location.origin)} />
      <p>Or create the first one yourself, here or with curl:</p>
      <Command label="Create an agent" text={createAgent(location.origin)} />
      <Reference />
    </div>
  )
}

function demoCommand(origin: string): string {
  return `AGENT_RUN_KEY=svc_ws_… ${script(`demo --url ${origin}`)}`
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

export function Command({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    <div class="command">
      <Scrollable as="pre" label={label}>
        {text}
      </Scrollable>
      <CopyButton text={() => text} label={`Copy: ${label}`} />
    </div>
  )
}

function Reference() {
  return (
    <p>
      All calls are described in the <a href="/docs">API reference</a>.
    </p>
  )
}
