import { KeyList } from './key-list.tsx'

/** All keys of the workspace. */
export function KeysView() {
  return (
    <section class="view keys-view" aria-label="Keys">
      <div class="view-head">
        <h1>Keys</h1>
        <span class="hint">A workspace key manages everything here; an agent key reports for one agent.</span>
      </div>
      <div class="panel">
        <KeyList agentId={null} />
      </div>
    </section>
  )
}
