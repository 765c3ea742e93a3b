import { readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { DATABASE_BUGS } from './database/planted.ts'

/** One place of the code, changed. */
export interface Edit {
  /** In `src`. */
  readonly path: string
  readonly text: string
  readonly becomes: string
}

const SRC = join(import.meta.dir, '..', '..', 'src')
const LOG = 'stores/journal/nats/log.ts'
const STORAGE = 'stores/journal/nats/storage.ts'
const PUBLISHER = 'stores/journal/nats/publisher.ts'
const HUB = 'feeds/live/hub.ts'
const REPLAY = 'feeds/live/replay.ts'
const READER = 'stores/journal/nats/reader.ts'
const SHARED_FEEDS = 'tenants/partitions/shared/feeds.ts'
const SINK = 'stores/sink/sink.ts'
const SEGMENTS = 'stores/journal/local/storage.ts'
const FILES = 'stores/journal/local/files.ts'
const RELAY = 'stores/journal/outbox-relay.ts'
const COUNTS = 'activity/runs/statistics.ts'

/** Bugs that the simulation must find. It found the first three in the code, each of which lost acknowledged rows. */
export const PLANTED: Readonly<Record<string, readonly Edit[]>> = {
  'refused-after-silence': [
    { path: STORAGE, text: '++this.made}', becomes: 'groupSeq + part}' },
    { path: PUBLISHER, text: "isUnsettled ||= outcome === 'unknown'", becomes: '' },
  ],
  'empty-read-is-a-gap': [
    { path: LOG, text: 'if (frames.length > 0) break\n', becomes: 'break\n' },
    {
      path: 'stores/journal/journal.ts',
      text: 'if (afterSeq >= endSeq) return afterSeq',
      becomes: 'return Math.max(afterSeq, endSeq)',
    },
  ],
  'end-search-jumps': [
    {
      path: 'stores/journal/nats/log-end.ts',
      text: '    at--\n  }',
      becomes: '    at = Math.min(at, head.groupSeq) - 1\n  }',
    },
  ],
  'announced-after-sent': [{ path: SINK, text: 'await this.position.set({ inFlightSeq })\n', becomes: '\n' }],
  'loaded-before-sent': [
    {
      path: SINK,
      text: 'stored: new Set() }\n',
      becomes: 'stored: new Set() }\n    await this.position.set({ loadedSeq: inFlightSeq })\n',
    },
  ],
  'unfinished-batch-forgotten': [{ path: SINK, text: 'if (isUnfinished) await', becomes: 'if (false) await' }],
  'silence-is-stored': [
    { path: PUBLISHER, text: "isTimeout(error) ? 'unknown'", becomes: "isTimeout(error) ? 'stored'" },
  ],
  'owner-goes-on-after-silence': [
    { path: STORAGE, text: 'throw this.closeAfter(error)\n      this.end', becomes: 'throw error\n      this.end' },
  ],
  'no-state-message': [
    {
      path: 'stores/journal/nats/journal.ts',
      text: 'await storage.publishState({ foundSeq: intactSeq, endSeq, loadedSeq: 0, isEndLost })\n',
      becomes: '\n',
    },
  ],
  'answered-before-written': [
    {
      path: 'stores/journal/log/group-commit.ts',
      text: 'await storage.write(commit, receivedAt)\n',
      becomes: 'void storage.write(commit, receivedAt).catch(() => {})\n',
    },
  ],
  'refused-rows-stay': [
    {
      path: 'stores/journal/log/group-commit.ts',
      text: '} finally {\n      this.clear()',
      becomes: '} finally {\n      if (Date.now() % 50 !== 0) this.clear()',
    },
  ],
  'load-not-confirmed': [
    {
      path: SINK,
      text: 'const beforeEnd = () => confirm().then(checkToken)',
      becomes: 'const beforeEnd = async () => checkToken()',
    },
  ],
  'forgotten-token-repeated': [
    { path: SINK, text: 'this.announcedAgeMs() <= tokenMs) return', becomes: 'tokenMs > 0) return' },
  ],
  'feed-joins-at-the-end': [
    {
      path: HUB,
      text: '(this.liveMembers === 0 ? this.deps.journal.endSeq : this.position)) return false',
      becomes: 'this.deps.journal.endSeq) return false',
    },
  ],
  'feed-joins-one-late': [{ path: HUB, text: 'this.position = position\n', becomes: 'this.position = position + 1\n' }],
  'feed-cursor-too-far': [
    { path: REPLAY, text: 'position = packet.firstSeq - 1\n', becomes: 'position = packet.firstSeq\n' },
  ],
  'feed-empty-read-is-the-end': [
    { path: REPLAY, text: 'resumedSeq: endOfGap(journal, position, endSeq)', becomes: 'resumedSeq: endSeq' },
    {
      path: READER,
      text: '  protected intervalMs(): number {',
      becomes:
        '  async read(seq, bytes) {\n    return this.tail.recent(seq, bytes) ?? this.log.readNow(seq, bytes).catch(() => [])\n  }\n\n' +
        '  protected intervalMs(): number {',
    },
  ],
  'feed-lag-unnoticed': [{ path: SHARED_FEEDS, text: 'await source.refresh(after)\n', becomes: '\n' }],
  'outbox-deleted-first': [
    {
      path: RELAY,
      text: 'const ids = new Set(await sieve.run(round, append))\n',
      becomes: 'await work.remove(rows)\n    const ids = new Set(await sieve.run(round, append))\n',
    },
  ],
  'outbox-ids-ignored': [{ path: RELAY, text: 'new Set(journal.lastOutboxIds())', becomes: 'new Set<string>()' }],
  'outbox-ids-not-taken-over': [
    {
      path: 'stores/journal/nats/journal.ts',
      text: 'const outboxIds = await outboxIdsAt(log, end.outbox)',
      becomes: 'const outboxIds = new Map()',
    },
  ],
  'outbox-appended-rows-stay': [{ path: RELAY, text: 'if (done.length > 0) await work.remove(done)\n', becomes: '\n' }],
  'outbox-order-of-kinds': [
    { path: RELAY, text: 'if (order < (lastKinds.get(run) ?? 0)) lastKinds', becomes: 'if (false) lastKinds' },
  ],
  'outbox-flushed-early': [
    { path: RELAY, text: "if (drain === 'drained') for", becomes: "if (drain !== 'failed') for" },
  ],
  'count-trusts-its-memory': [
    { path: COUNTS, text: 'if (isUnsure) position = await counts.position(journal)\n', becomes: '\n' },
  ],
  'count-of-a-slower-owner': [
    { path: COUNTS, text: 'isWritten ? seen : await counts.position(journal)', becomes: 'seen' },
  ],
  'count-flushed-early': [{ path: COUNTS, text: '({ seq }) => seq <= position)', becomes: '() => true)' }],
  'count-empty-read-is-the-end': [
    { path: COUNTS, text: 'return endOfGap(journal, seq, endSeq)', becomes: 'return endSeq' },
    { path: LOG, text: 'if (frames.length > 0) break\n', becomes: 'break\n' },
  ],
  'disk-directory-not-synced': [{ path: SEGMENTS, text: 'await syncDir(dirname(dir))\n', becomes: '\n' }],
  'disk-recovered-rows-not-synced': [
    {
      path: SEGMENTS,
      text: 'if (this.endSeq > this.acknowledged.seq) await rewrite',
      becomes: 'if (false) await rewrite',
    },
  ],
  'disk-answered-before-sync': [{ path: FILES, text: '| (fs.constants.O_DSYNC ?? fs.constants.O_SYNC)', becomes: '' }],
  'disk-position-before-data': [
    {
      path: SEGMENTS,
      text: 'await writeAll(this.file!,',
      becomes: 'this.acknowledged.set(endSeq, receivedAt)\n      await writeAll(this.file!,',
    },
  ],
  'disk-name-not-synced': [{ path: SEGMENTS, text: 'await syncDir(dir)\n    const empty', becomes: 'const empty' }],
  'disk-tail-cut-too-early': [
    {
      path: SEGMENTS,
      text: 'Math.min(valid.at, bytes.length))',
      becomes: 'damaged === undefined ? valid.at : Math.max(0, valid.at - PAGE_BYTES))',
    },
  ],
  'disk-short-write-counts': [{ path: FILES, text: 'written += bytesWritten', becomes: 'written = bytes.length' }],
  'disk-deleted-before-loaded': [{ path: SEGMENTS, text: 'oldest.lastSeq > seq', becomes: 'oldest.firstSeq > seq' }],
  'disk-torn-record-accepted': [
    {
      path: 'stores/journal/log/frame.ts',
      text: 'if (crc32(block) !== bytes.readUInt32LE(at + 52))',
      becomes: 'if (false)',
    },
  ],
  'disk-outbox-forgotten': [{ path: SEGMENTS, text: 'this.readOutboxIds()\n', becomes: '\n' }],
  'disk-outbox-ids-not-synced': [{ path: SEGMENTS, text: ', flush: true }', becomes: ' }' }],
  'disk-failed-file-written-on': [
    {
      path: SEGMENTS,
      text: 'this.sealed = true\n    try {\n      await truncate(',
      becomes: 'try {\n      if (false) await truncate(',
    },
  ],
  'disk-batch-not-synced': [{ path: 'stores/sink/position.ts', text: '| (fs.constants.O_DSYNC ?? 0)', becomes: '' }],
  'disk-read-before-acknowledged': [
    { path: 'stores/journal/local/followed-log.ts', text: '- point.at, throughSeq }', becomes: '- point.at }' },
  ],
  'end-not-searched-back': [
    { path: 'stores/journal/nats/log-end.ts', text: ' || head.part === head.parts - 1\n', becomes: '\n' },
  ],
  ...DATABASE_BUGS,
}

/** Modules that read and write the log's files: they get the disk of the world instead. */
export const DISK_MODULES: readonly Edit[] = [
  ...[...new Bun.Glob('stores/journal/local/*.ts').scanSync(SRC)].sort().flatMap((path) => editsOf(path)),
  ...editsOf('stores/sink/position.ts'),
  ...editsOf('base/sync-dir.ts'),
  { path: 'stores/journal/local/identity.ts', text: 'randomBytes(KEY_BYTES)', becomes: 'Buffer.alloc(KEY_BYTES, 7)' },
]

function editsOf(path: string): Edit[] {
  const source = readFileSync(join(SRC, path), 'utf8')
  return ["'node:fs'", "'node:fs/promises'"]
    .filter((name) => source.includes(name))
    .map((name) => ({ path, text: name, becomes: `'${join(import.meta.dir, 'fs.ts')}'` }))
}

/** Plants a bug in this process. Call before the code under test is imported. */
export function plant(edits: readonly Edit[]): void {
  for (const path of new Set(edits.map((edit) => edit.path))) {
    const whole = realpathSync(join(SRC, path))
    const load = async () => {
      let contents = await Bun.file(whole).text()
      for (const { text, becomes } of edits.filter((edit) => edit.path === path)) {
        if (!contents.includes(text)) throw new Error(`${path} does not have this text any more: ${text}`)
        contents = contents.replace(text, () => becomes)
      }
      return { contents, loader: 'ts' as const }
    }
    const filter = new RegExp(`^${RegExp.escape(whole)}$`)
    Bun.plugin({ name: 'planted bug', setup: (build) => void build.onLoad({ filter }, load) })
  }
}
