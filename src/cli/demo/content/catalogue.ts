import { note, type Profile, type RunPlan, type Step, task } from '../plan.ts'
import type { Random } from '../random.ts'
import { MINI, Talk } from '../talk.ts'

const SYSTEM =
  'Write a product text of two sentences from the data sheet. No superlatives, no claims that the data do not support.'

const FEEDS = ['Shimano', 'Ortlieb', 'Brooks', 'Continental', 'Busch & Müller']

const TEXTS = [
  {
    product: 'Pannier 20 l',
    text: 'A roll-top pannier of 20 litres that keeps rain out. Hooks fit racks with tubes of 8 to 16 mm.',
  },
  {
    product: 'Brake pads, organic',
    text: 'Quiet pads for two-piston calipers. They wear faster than sintered ones, and spare the disc.',
  },
  {
    product: 'Rear light 4F',
    text: 'Mounts on a rack with 50 or 80 mm hole distance. Stays lit for four minutes at a stop.',
  },
  {
    product: 'Tyre 47-622',
    text: 'A tubeless-ready gravel tyre of 520 g. Between 2.5 and 4.5 bar, depending on load.',
  },
]

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
    const feed = random.pick(FEEDS)
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
  const batches = TEXTS.slice(0, random.int(2, TEXTS.length)).map(({ product, text }): Step[] => {
    const talk = new Talk(random, MINI, SYSTEM).user(`${feed} ${product}: data sheet attached`)
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
