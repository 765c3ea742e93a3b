import type { JsonObject } from '../../../client/json.ts'
import type { Random } from '../random.ts'
import { TEXTS } from './texts.ts'

/** Facts of one conversation, by the names that its texts have in braces. */
type Facts = Readonly<Record<string, string | number>>

export function factsOf(random: Random): Facts {
  const { items, carriers, places, days } = TEXTS.facts
  const { item, price } = random.pick(items)
  return {
    order: `LK-${random.int(20_000, 89_999)}`,
    item,
    price,
    carrier: random.pick(carriers),
    place: random.pick(places),
    day: random.pick(days),
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
