import { note, type Profile, type RunPlan, type Step, task } from '../plan.ts'
import type { Random } from '../random.ts'
import { HAIKU, Talk } from '../talk.ts'
import { TEXTS } from './texts.ts'

const { system, suppliers } = TEXTS.invoices

const MISMATCH_RATE = 0.08
const TIMEOUT_RATE = 0.04
const CENTS = 100

/** Reads invoices as they arrive; reported with plain HTTP calls. */
export const invoices: Profile = {
  name: 'Invoice intake',
  description:
    'Reads the invoices of suppliers, checks them against orders and books them. Reports with plain HTTP calls.',
  sender: 'http',
  share: 3,
  versions: [
    { release: '3.0.1', model: 'claude-3-5-haiku', check: 'total' },
    { release: '3.1.0', model: 'claude-haiku-4-5', check: 'total and order' },
  ],
  episode(random) {
    const supplier = random.pick(suppliers)
    const quantity = random.int(4, 60)
    const price = random.int(900, 14_000) / CENTS
    const total = Math.round(quantity * price * CENTS) / CENTS
    const number = `${supplier.country}-${random.int(10_000, 99_999)}`
    const file = `invoices/${number}.pdf`
    const invoice = { supplier: supplier.name, number, lines: [{ item: supplier.goods, quantity, price }], total }
    const roll = random.next()
    const rest =
      roll < MISMATCH_RATE
        ? mismatch(invoice, random)
        : roll < MISMATCH_RATE + TIMEOUT_RATE
          ? unread(file, random)
          : booked(invoice, random)
    return [
      {
        input: { file, pages: random.int(1, 4), received_from: `billing@${supplier.country.toLowerCase()}.example` },
        triggerType: random.chance(0.7) ? 'scheduled' : 'webhook',
        externalRunId: number,
        tags: ['invoices', `country:${supplier.country}`],
        metadata: { release: '3.1.0', mailbox: 'billing' },
        ...rest,
      },
    ]
  },
}

interface Invoice {
  readonly supplier: string
  readonly number: string
  readonly lines: readonly { readonly item: string; readonly quantity: number; readonly price: number }[]
  readonly total: number
}

function extract(invoice: Invoice, random: Random): Step {
  const { supplier, number, lines, total } = invoice
  const text = [
    supplier,
    `Invoice ${number}`,
    ...lines.map(({ item, quantity, price }) => `${quantity} x ${item} @ ${price}`),
    `Total ${total} EUR`,
  ]
  const talk = new Talk(random, HAIKU, system, 'plain').user(text.join('\n'))
  const ocr = task('recognise the text', [
    note('info', 'ocr.finished', { pages: 1, confidence: random.int(88, 99) / 100 }, random.latencyMs(700)),
  ])
  return task('extract', [ocr, talk.says(JSON.stringify(invoice, null, 2))], { output: { number, total } })
}

function booked(invoice: Invoice, random: Random): Pick<RunPlan, 'steps' | 'outcome'> {
  const { number, supplier, total } = invoice
  const order = `PO-${random.int(4_000, 9_900)}`
  const steps: Step[] = [
    extract(invoice, random),
    task('check against the order', [note('info', 'order.matched', { order, difference: 0 }, random.latencyMs(160))], {
      output: { order },
    }),
    task('book', [note('info', 'ledger.posted', { account: '5400', amount_eur: total }, random.latencyMs(210))], {
      output: { posted: true },
    }),
  ]
  return {
    steps,
    outcome: { status: 'completed', output: { supplier, number, total_eur: total, order, booked: true } },
  }
}

function mismatch(invoice: Invoice, random: Random): Pick<RunPlan, 'steps' | 'outcome'> {
  const ordered = Math.round(invoice.total * random.int(70, 95)) / CENTS
  const message = `Total ${invoice.total} EUR does not match the order (${ordered} EUR)`
  const detail = {
    reason: 'total_mismatch',
    invoice: invoice.number,
    invoiced_eur: invoice.total,
    ordered_eur: ordered,
  }
  const steps: Step[] = [
    extract(invoice, random),
    task('check against the order', [note('error', 'check.failed', { message, ...detail }, random.latencyMs(160))], {
      error: message,
    }),
    task('book', [], { isSkipped: true }),
  ]
  return { steps, outcome: { status: 'failed', message, detail } }
}

function unread(file: string, random: Random): Pick<RunPlan, 'steps' | 'outcome'> {
  const message = 'Timeout: the text recognition did not answer within 30 s'
  const slow = (attempt: number) =>
    note('warn', 'retry', { step: 'recognise the text', attempt, reason: 'timeout' }, random.latencyMs(3_000))
  const steps: Step[] = [
    task(
      'extract',
      [
        task('recognise the text', [slow(2), slow(3), note('error', 'ocr.failed', { message, file })], {
          error: message,
        }),
      ],
      { error: message },
    ),
    task('check against the order', [], { isSkipped: true }),
    task('book', [], { isSkipped: true }),
  ]
  return { steps, outcome: { status: 'failed', message, detail: { reason: 'timeout', file, attempts: 3 } } }
}
