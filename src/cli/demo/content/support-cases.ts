import type { JsonObject } from '../../../client/json.ts'
import type { ToolUse } from '../talk.ts'

interface Turn {
  readonly customer: string
  readonly uses: readonly ToolUse[]
  readonly answer: string
}

interface SupportCase {
  readonly intent: string
  readonly turns: readonly Turn[]
}

const order = (status: string): ToolUse => ({
  tool: 'get_order',
  args: { order: '{order}' },
  result: { order: '{order}', item: '{item}', total_eur: '{price}', status },
  typicalMs: 120,
})

/** Conversations with customers: each turn is a run of the same session. */
export const SUPPORT_CASES: readonly SupportCase[] = [
  {
    intent: 'delivery',
    turns: [
      {
        customer: 'My {item} has been "out for delivery" since Monday. Where is it? Order {order}.',
        uses: [
          order('shipped'),
          {
            tool: 'track_parcel',
            args: { carrier: '{carrier}', order: '{order}' },
            result: { last_scan: '{place}', state: 'address not found', attempts: 2 },
            typicalMs: 850,
          },
        ],
        answer:
          'I am sorry for the wait. {carrier} scanned your parcel in **{place}** and could not find the address after two attempts. Could you check the house number for me?',
      },
      {
        customer: 'Oh, it is 14b, not 14.',
        uses: [
          {
            tool: 'update_address',
            args: { order: '{order}', house_number: '14b' },
            result: { updated: true, next_attempt: '{day}' },
            typicalMs: 300,
          },
        ],
        answer:
          'Thank you. I corrected it to **14b**; {carrier} tries again on **{day}** before noon. You will get a text message an hour before.',
      },
      {
        customer: 'Perfect, thanks!',
        uses: [],
        answer: 'You are welcome. Enjoy the {item}!',
      },
    ],
  },
  {
    intent: 'return',
    turns: [
      {
        customer: 'The {item} from order {order} is too small. Can I swap it for the next size?',
        uses: [
          order('delivered'),
          {
            tool: 'check_stock',
            args: { item: '{item}', size: 'next' },
            result: { available: '{spare}', warehouse: '{place}' },
            typicalMs: 180,
          },
        ],
        answer: 'Yes. We have {spare} of the next size in {place}. Shall I reserve one and send you a return label?',
      },
      {
        customer: 'Yes please.',
        uses: [
          {
            tool: 'create_exchange',
            args: { order: '{order}', item: '{item}' },
            result: { exchange: 'EX-{number}', label: 'sent' },
            typicalMs: 420,
          },
        ],
        answer:
          'Done: exchange **EX-{number}**. The label is in your inbox; the new one leaves as soon as {carrier} scans your parcel.',
      },
    ],
  },
  {
    intent: 'billing',
    turns: [
      {
        customer: 'I was charged {price} EUR twice for {order}. Please return one of the payments.',
        uses: [
          order('delivered'),
          {
            tool: 'list_payments',
            args: { order: '{order}' },
            result: {
              payments: [
                { id: 'pay_{number}', eur: '{price}', state: 'captured' },
                { id: 'pay_{number}b', eur: '{price}', state: 'authorised' },
              ],
            },
            typicalMs: 260,
          },
        ],
        answer:
          'Only one payment was taken. The second is a *reservation* by your bank, which lapses by itself within {days} days. I have asked for it to be released today.',
      },
    ],
  },
  {
    intent: 'advice',
    turns: [
      {
        customer: 'Does the {item} fit a 2019 Linden?',
        uses: [
          {
            tool: 'search_manuals',
            args: { query: '{item} Linden 2019' },
            result: { found: [{ title: 'Linden service manual, 2018-2020', page: 41 }] },
            typicalMs: 500,
          },
        ],
        answer:
          'It does. The service manual (page 41) lists it for frames from 2018 to 2020; you need the short bolts, which are in the box.',
      },
      {
        customer: 'And which torque for the bolts?',
        uses: [
          {
            tool: 'read_page',
            args: { manual: 'Linden 2018-2020', page: 41 },
            result: { text: 'Tighten both M5 bolts to 5 Nm, alternating.' },
            typicalMs: 200,
          },
        ],
        answer: '**5 Nm**, both bolts, alternating. Use a torque wrench if the seatpost is carbon.',
      },
    ],
  },
  {
    intent: 'account',
    turns: [
      {
        customer: 'I cannot log in since I changed my phone, the code never comes.',
        uses: [
          {
            tool: 'get_account',
            args: { channel: 'chat' },
            result: { second_factor: 'sms', phone: '*** *** 27', verified: true },
            typicalMs: 140,
          },
          { tool: 'send_magic_link', args: { to: 'email' }, result: { sent: true }, typicalMs: 310 },
        ],
        answer:
          'Codes still go to the old number ending in 27. I sent a one-time link to your e-mail address; after you log in, set the new number under *Security*.',
      },
    ],
  },
  {
    intent: 'delivery',
    turns: [
      {
        customer: 'Können Sie die Lieferadresse für {order} noch ändern? Ich bin umgezogen.',
        uses: [
          order('packed'),
          {
            tool: 'update_address',
            args: { order: '{order}', city: '{place}' },
            result: { updated: true, next_attempt: '{day}' },
            typicalMs: 300,
          },
        ],
        answer: 'Ja, gerade noch: Ihre Bestellung geht nun nach **{place}** und kommt voraussichtlich am {day} an.',
      },
    ],
  },
  {
    intent: 'subscription',
    turns: [
      {
        customer: 'Please cancel my service plan before it renews on {day}.',
        uses: [
          {
            tool: 'get_plan',
            args: { customer: 'me' },
            result: { plan: 'Care Plus', renews: '{day}', eur_per_year: 79 },
            typicalMs: 130,
          },
          {
            tool: 'cancel_plan',
            args: { plan: 'Care Plus', at: 'end of term' },
            result: { cancelled: true },
            typicalMs: 280,
          },
        ],
        answer:
          'Your *Care Plus* plan ends on {day} and will not renew. The yearly check that you have not used stays valid for {days} more weeks.',
      },
      {
        customer: 'Can I still book that check?',
        uses: [
          {
            tool: 'find_slots',
            args: { city: '{place}', service: 'yearly check' },
            result: { slots: ['{day} 09:30', '{day} 14:00'] },
            typicalMs: 350,
          },
        ],
        answer: 'Yes. In {place} there is room on {day} at 09:30 or 14:00. Which one suits you?',
      },
      {
        customer: '09:30 please',
        uses: [
          {
            tool: 'book_slot',
            args: { city: '{place}', slot: '{day} 09:30' },
            result: { booking: 'B-{number}' },
            typicalMs: 240,
          },
        ],
        answer: 'Booked: **{day}, 09:30** in {place}, reference B-{number}.',
      },
    ],
  },
]

interface SupportFailure {
  readonly tool: string
  readonly error: string
  readonly exactMs?: number
  readonly message: string
  readonly detail: JsonObject
}

/** How a turn can go wrong. */
export const SUPPORT_FAILURES: readonly SupportFailure[] = [
  {
    tool: 'get_order',
    error: 'HTTP 503: order service is restarting',
    message: 'The order service did not answer after three attempts',
    detail: { reason: 'upstream_unavailable', service: 'orders', attempts: 3, last_status: 503 },
  },
  {
    tool: 'issue_credit',
    error: 'card_closed: the card of the first payment no longer exists',
    message: 'Payment provider refused the credit: card_closed',
    detail: { reason: 'card_closed', provider: 'adyen', provider_status: 422 },
  },
  {
    tool: 'search_manuals',
    error: 'timeout after 10000 ms',
    exactMs: 10_000,
    message: 'Timeout: search_manuals took longer than 10 s',
    detail: { reason: 'timeout', tool: 'search_manuals', limit_ms: 10_000 },
  },
]
