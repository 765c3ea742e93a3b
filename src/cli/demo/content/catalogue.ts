import { note, type Profile, type RunPlan, type Step, task } from '../plan.ts'
import type { Random } from '../random.ts'
import { MINI, Talk } from '../talk.ts'
import { TEXTS } from './texts.ts'

const { system, feeds, texts } = TEXTS.catalogue

const SCHEMA_CHANGE_RATE = 0.1

/** A data pipeline: reads feeds of suppliers, writes product texts, loads them into the shop. */
export const catalogue: Profile = {
  name: 'Catalogue sync',
  description: 'A data pipeline: reads the feeds of suppliers, has texts written, loads products into the shop.',
  sender: 'otlp',
  share: 2,
  versions: [
    { release: '7.3.0', model: 'gpt-4o-mini', batch: 50 },
    { release: '7.4.0', model: 'gpt-4.1-mini', batch: 100 },
  ],
  episode(random) {
    const feed = random.pick(feeds)
    const rows = random.int(180, 4_200)
    const rest = random.chance(SCHEMA_CHANGE_RATE) ? changedSchema(feed, rows, random) : synced(feed, rows, random)
    return [
      {
        input: { feed, rows },
        triggerType: 'scheduled',
        tags: ['pipeline', `feed:${feed.toLowerCase()}`],
        metadata: {},
        ...rest,
      },
    ]
  },
}

function extract(feed: string, rows: number, random: Random): Step {
  return task(
    'extract',
    [note('info', 'feed.downloaded', { feed, rows, kilobytes: rows * 2 }, random.latencyMs(900))],
    {
      input: { feed },
      output: { rows },
    },
  )
}

function synced(feed: string, rows: number, random: Random): Pick<RunPlan, 'steps' | 'outcome'> {
  const changed = Math.ceil(rows / random.int(20, 90))
  const batches = texts.slice(0, random.int(2, texts.length)).map(({ product, text }): Step[] => {
    const talk = new Talk(random, MINI, system).user(`${feed} ${product}: data sheet attached`)
    return [task(`text: ${product}`, [talk.says(text)], { output: { characters: text.length } })]
  })
  const duplicates = random.int(0, 12)
  const steps: Step[] = [
    extract(feed, rows, random),
    task('transform', [
      note(
        duplicates > 8 ? 'warn' : 'info',
        'rows.checked',
        { rows, duplicates, rejected: random.int(0, 3) },
        random.latencyMs(400),
      ),
      task('write texts', [{ kind: 'branches', branches: batches }], { output: { texts: batches.length } }),
    ]),
    task('load', [note('info', 'products.upserted', { changed }, random.latencyMs(650))], { output: { changed } }),
  ]
  return { steps, outcome: { status: 'completed', output: { feed, rows, changed, texts: batches.length } } }
}

function changedSchema(feed: string, rows: number, random: Random): Pick<RunPlan, 'steps' | 'outcome'> {
  const message = `Column "weight_g" is missing in the feed of ${feed}: 100 % of ${rows} rows rejected`
  const steps: Step[] = [
    extract(feed, rows, random),
    task(
      'transform',
      [
        note(
          'error',
          'schema.changed',
          { message, missing: ['weight_g'], added: ['weight_kg'] },
          random.latencyMs(300),
        ),
      ],
      { error: message },
    ),
    task('load', [], { isSkipped: true }),
  ]
  return {
    steps,
    outcome: { status: 'failed', message, detail: { reason: 'schema_changed', feed, missing: 'weight_g' } },
  }
}
