import type { JsonObject } from '../../../client/json.ts'
import type { Random } from '../random.ts'

/** The people and things of a bicycle shop, whose agents the demo simulates. */

export const CUSTOMERS = [
  'mara.lind',
  'tobias.keller',
  'aiko.tanaka',
  'luis.ortega',
  'priya.raman',
  'hannah.weiss',
  'oliver.grant',
  'sofia.rossi',
  'daniel.osei',
  'freya.holm',
  'jack.morrison',
  'nadia.haddad',
  'peter.novak',
  'camille.durand',
].map((name) => `${name}@example.com`)

export const COLLEAGUES = ['ines', 'marcus', 'yuki', 'tomasz', 'leila', 'ben'].map((name) => `${name}@larkspur.example`)

const ITEMS = [
  { item: 'Gravel frame R2', price: 1_290 },
  { item: 'Carbon seatpost 27.2', price: 139 },
  { item: 'Trail helmet, size M', price: 94.5 },
  { item: 'Commuter e-bike Linden', price: 2_450 },
  { item: 'Dynamo light set', price: 119 },
  { item: 'Winter gloves', price: 42 },
  { item: 'Child seat Wren', price: 158 },
  { item: 'Pannier pair, 40 l', price: 86 },
]
const CARRIERS = ['DHL', 'UPS', 'PostNord', 'GLS']
const PLACES = ['Leipzig', 'Rotterdam', 'Lyon', 'Malmö', 'Bristol', 'Graz']
const DAYS = ['Tuesday', 'Wednesday', 'Thursday', 'Friday']

/** Facts of one conversation, by the names that its texts have in braces. */
type Facts = Readonly<Record<string, string | number>>

export function factsOf(random: Random): Facts {
  const { item, price } = random.pick(ITEMS)
  return {
    order: `LK-${random.int(20_000, 89_999)}`,
    item,
    price,
    carrier: random.pick(CARRIERS),
    place: random.pick(PLACES),
    day: random.pick(DAYS),
    number: random.int(1_000, 9_999),
    days: random.int(2, 9),
    spare: random.int(2, 38),
  }
}

const NAME = /\{(\w+)\}/g
const ONLY_NAME = /^\{(\w+)\}$/

/** Replaces `{name}` in all texts of a value. A text that is nothing but a name becomes the fact itself. */
export function fill<T>(value: T, facts: Facts): T {
  if (typeof value === 'string') {
    const alone = ONLY_NAME.exec(value)?.[1]
    const fact = alone === undefined ? undefined : facts[alone]
    return (fact ?? value.replace(NAME, (text, name) => String(facts[name] ?? text))) as T
  }
  if (Array.isArray(value)) return value.map((each) => fill(each, facts)) as T
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value as JsonObject).map(([name, each]) => [name, fill(each, facts)])) as T
}
