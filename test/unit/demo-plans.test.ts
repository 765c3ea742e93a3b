import { expect, test } from 'bun:test'
import { PROFILES } from '../../src/cli/demo/content/profiles.ts'
import { scoresOf } from '../../src/cli/demo/content/scores.ts'
import { replyTo } from '../../src/cli/demo/hosted/script.ts'
import { type PlannedTask, type RunPlan, timelineOf } from '../../src/cli/demo/plan.ts'
import { createRandom } from '../../src/cli/demo/random.ts'

const SEEDS = Array.from({ length: 80 }, (_, seed) => seed)

function plansOf(seed: number): RunPlan[] {
  return PROFILES.flatMap((profile) => profile.episode(createRandom(seed)))
}

test('the same seed plans the same runs', () => {
  expect(JSON.stringify(plansOf(7))).toBe(JSON.stringify(plansOf(7)))
  expect(JSON.stringify(plansOf(7))).not.toBe(JSON.stringify(plansOf(8)))
})

test('runs complete, fail and are cancelled; those of a session are several; texts are filled in', () => {
  const plans = SEEDS.flatMap(plansOf)
  expect(new Set(plans.map(({ outcome }) => outcome.status))).toEqual(new Set(['completed', 'failed', 'cancelled']))
  const sessions = Map.groupBy(plans, ({ sessionId }) => sessionId)
  expect([...sessions.values()].filter((runs) => runs.length > 1).length).toBeGreaterThan(20)
  expect(JSON.stringify(plans).match(/\{(order|item|price|carrier|place|day|number|days|spare)\}/)).toBeNull()
})

test('runs that end get the same scores each time: of a judge, and of some users, with and without a comment', () => {
  const plans = SEEDS.flatMap(plansOf)
  const scores = plans.flatMap(scoresOf)
  expect(plans.flatMap(scoresOf)).toEqual(scores)
  expect(plans.filter(({ outcome }) => outcome.status === 'cancelled').flatMap(scoresOf)).toEqual([])
  const kinds = new Set(
    scores.map(({ name, value, label }) => `${name} ${typeof value === 'number' ? 'number' : (value ?? label)}`),
  )
  expect([...kinds].sort()).toEqual([
    'feedback false',
    'feedback true',
    'quality number',
    'verdict right',
    'verdict wrong',
  ])
  expect(scores.some(({ comment }) => comment !== undefined)).toBe(true)
})

test('a task begins after its parent and ends before it, and everything within the run', () => {
  for (const plan of plansOf(3)) {
    const { moments, endsAt } = timelineOf(plan)
    const begun = new Map<PlannedTask, { parent: PlannedTask | undefined; ended: boolean }>()
    let last = 0
    for (const moment of moments) {
      expect(moment.at).toBeGreaterThanOrEqual(last)
      last = moment.at
      if (moment.kind === 'task') begun.set(moment.task, { parent: moment.parent, ended: false })
      const within = moment.kind === 'task' ? moment.parent : moment.kind === 'event' ? moment.task : undefined
      if (within !== undefined) expect(begun.get(within)?.ended).toBe(false)
      if (moment.kind === 'task end') begun.set(moment.task, { ...begun.get(moment.task)!, ended: true })
    }
    expect([...begun.values()].every(({ ended }) => ended)).toBe(true)
    expect(endsAt).toBeGreaterThan(last)
  }
})

test('the scripted model asks for an approval above 50 EUR, asks about unclear cases, and accepts a rejection', () => {
  const system = { role: 'system', content: 'You are the refund desk of Larkspur.' }
  const messages: Parameters<typeof replyTo>[0][number][] = [system]
  const say = (content: string) => messages.push({ role: 'user', content })
  const callOf = (result: unknown) => {
    const [call] = replyTo(messages).calls ?? []
    const id = `call_${messages.length}`
    messages.push({ role: 'assistant', content: null, tool_calls: [{ id, function: { name: call?.name ?? '' } }] })
    messages.push({ role: 'tool', content: JSON.stringify(result), tool_call_id: id })
    return [call?.name, call?.arguments]
  }
  say('Hello, I would like a refund, please.')
  expect(replyTo(messages).text).toContain('Which order')
  say('Please refund 139 EUR for order LK-20417: the helmet is worn.')
  expect(callOf({ state: 'delivered' })).toEqual(['get_order', { order: 'LK-20417' }])
  expect(callOf({ text: 'Offer a repair.' })[0]).toBe('ask_policy')
  expect(callOf({ error: 'a person has rejected this call: no photo' })).toEqual([
    'issue_refund',
    expect.objectContaining({ order: 'LK-20417', amount_eur: 139 }),
  ])
  expect(replyTo(messages).text).toContain('no photo')
})
