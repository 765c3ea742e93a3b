import { describe, expect, test } from 'bun:test'
import { RawJson } from '../../src/base/raw-json.ts'
import { endOf, framesAfter, OUTPUT_START, OutputLog, parseOutputId } from '../../src/hosted/output/output-log.ts'
import type { Call, HostedRun, RunOutcome, Step } from '../../src/hosted/run/run.ts'
import { type Random, seededRandom } from '../support/random.ts'
import { usageRecord } from '../support/usage.ts'

/** A run's output stream, for readers that start anywhere, before and after a restart (docs/hosted-agents.md). */

const RUN = { runId: 'the-run' } as HostedRun
const DONE: RunOutcome = {
  kind: 'ended',
  status: 'completed',
  output: RawJson.of({ text: 'x' }),
  errorMessage: null,
  errorDetail: null,
  usage: usageRecord(1, 2),
}

interface Frame {
  readonly id: string
  readonly event: string
  readonly data: { readonly delta?: string; readonly step?: number; readonly offset?: number; readonly phase?: string }
}

function parse(text: string): Frame[] {
  return text
    .split('\n\n')
    .slice(0, -1)
    .map((block) => {
      const [, id, event, data] = /^id: (.*)\nevent: (.*)\ndata: (.*)$/.exec(block)!
      return { id: id!, event: event!, data: JSON.parse(data!) }
    })
}

/** Reads a log as a client does, whenever it is notified. */
class Reader {
  readonly frames: Frame[] = []
  isOver = false

  constructor(
    private log: OutputLog,
    private position = OUTPUT_START,
  ) {
    log.listen(() => this.read())
    this.read()
  }

  read(): void {
    if (this.isOver) return
    const { text, position, isOver } = framesAfter(this.log, this.position)
    this.frames.push(...parse(text))
    this.position = position
    this.isOver = isOver
  }

  /** What a client displays: the text of each step, and all other frames. */
  get shown() {
    const texts: Record<string, string> = {}
    for (const { event, data } of this.frames)
      if (event === 'chunk') texts[data.step!] = (texts[data.step!] ?? '').slice(0, data.offset) + data.delta
    for (const step of Object.keys(texts)) if (texts[step] === '') delete texts[step]
    return { texts, rest: this.frames.filter(({ event }) => event !== 'chunk') }
  }
}

function call(step: number, position: number, frames: readonly [number | null, number | null]): Call {
  const [startedFrame, finishedFrame] = frames
  return {
    callId: `${step}-${position}`,
    step,
    position,
    toolCallId: `call_${position}`,
    tool: 't',
    input: RawJson.of({}),
    status: finishedFrame === null ? 'started' : 'finished',
    childRunId: null,
    output: finishedFrame === null ? null : RawJson.of(position),
    startedFrame,
    finishedFrame,
    durationMs: finishedFrame === null ? null : 3,
  }
}

function stepOf(step: number, content: string, attempt = `a${step}`): Step {
  return { step, attempt, content, toolCalls: [], remark: null, inputTokens: 0, outputTokens: 0 }
}

/** A run with random steps; `stored` rebuilds the log from its rows at any moment. */
function live(random: Random, onChange: (log: OutputLog, stored: () => OutputLog) => void) {
  const log = new OutputLog(RUN.runId)
  const steps: Step[] = []
  const calls: Call[] = []
  const stored = () => OutputLog.of({ run: RUN, steps: [...steps], calls: [...calls] })
  const changed = () => onChange(log, stored)
  const last = random.int(1, 4)
  for (let step = 1; step <= last; step++) {
    let content = ''
    let attempt = ''
    for (let tries = random.int(1, 2); tries > 0; tries--) {
      attempt = `s${step}t${tries}`
      content = ''
      log.beginText(step, attempt)
      for (let pieces = random.int(0, 5); pieces > 0; pieces--) {
        const delta = random.pick(['a', 'bc', '🎉', 'é\n'])
        content += delta
        log.addText(delta)
        changed()
      }
    }
    const open =
      step === last
        ? []
        : Array.from({ length: random.int(1, 4) }, (_, i) => call(step, i, [log.nextFrameNumber(), null]))
    steps.push(stepOf(step, content, attempt))
    calls.push(...open)
    for (const each of open) log.addCall(each)
    changed()
    while (open.length > 0) {
      const [ended] = open.splice(random.int(0, open.length - 1), 1)
      const done = call(step, ended!.position, [ended!.startedFrame, log.nextFrameNumber()])
      calls[calls.indexOf(ended!)] = done
      log.addCall(done)
      changed()
    }
  }
  log.close(DONE, null)
  const whole = stored()
  whole.close(DONE, null)
  return { log, stored: whole }
}

describe('a reader of a run', () => {
  test('ends up with the same output, wherever and whenever it starts or reconnects, even from the rows alone', () => {
    const random = seededRandom('output-log')
    for (let round = 0; round < 60; round++) {
      const readers: Reader[] = []
      const { log, stored } = live(random, (log) => {
        if (random.bool(0.3)) readers.push(new Reader(log))
      })
      const whole = new Reader(stored)
      expect(whole.isOver).toBe(true)
      for (const reader of [...readers, new Reader(log)]) {
        expect(reader.shown).toEqual(whole.shown)
        expect(reader.isOver).toBe(true)
        for (const [index, { id }] of reader.frames.entries()) {
          for (const source of [log, stored]) {
            const rest = new Reader(source, parseOutputId(id)!)
            const again = new Reader(stored)
            again.frames.splice(0, again.frames.length, ...reader.frames.slice(0, index + 1), ...rest.frames)
            expect(again.shown, `round ${round}, after ${id}`).toEqual(whole.shown)
          }
        }
      }
    }
  })

  test('that loses its process gets from the next one what it has not seen, and the unfinished step again', () => {
    const random = seededRandom('output-log restart')
    for (let round = 0; round < 60; round++) {
      let seen: { frames: readonly Frame[]; log: OutputLog } | undefined
      const chance = random.next() / 4
      live(random, (log, stored) => {
        if (seen === undefined && random.bool(chance))
          seen = { frames: parse(framesAfter(log, OUTPUT_START).text), log: stored() }
      })
      if (seen === undefined) continue
      const { frames, log } = seen
      const step = log.lastStep + 1
      log.beginText(step, 'next')
      log.addText('Again.')
      log.close(DONE, null)
      const reader = new Reader(log, frames.length === 0 ? OUTPUT_START : parseOutputId(frames.at(-1)!.id)!)
      const both = new Reader(log)
      const whole = both.shown
      both.frames.splice(0, both.frames.length, ...frames, ...reader.frames)
      expect(both.shown.texts[step]).toBe('Again.')
      expect(both.shown).toEqual(whole)
    }
  })
})

describe('frame numbers', () => {
  test('continue after those of earlier calls and pauses', () => {
    const log = OutputLog.of({ run: RUN, steps: [stepOf(1, '')], calls: [call(1, 0, [2, 5]), call(1, 1, [3, null])] })
    expect(log.nextFrameNumber()).toBe(6)
    log.skipFrameNumbers(9)
    log.skipFrameNumbers(4)
    expect(log.nextFrameNumber()).toBe(10)
  })

  test('of a stored run are in order, whatever the order of its calls', () => {
    const log = OutputLog.of({ run: RUN, steps: [stepOf(1, '')], calls: [call(1, 0, [1, 4]), call(1, 1, [2, 3])] })
    expect(parse(framesAfter(log, OUTPUT_START).text).map(({ id }) => id)).toEqual(['1.1.1', '1.1.2', '1.1.3', '1.1.4'])
  })
})

describe('the last frame', () => {
  const ended = (outcome: RunOutcome) => {
    const log = OutputLog.of({ run: RUN, steps: [stepOf(1, 'x')], calls: [] })
    log.close(outcome, 'the-session')
    return parse(framesAfter(log, endOf(OutputLog.of({ run: RUN, steps: [stepOf(1, 'x')], calls: [] }))).text)
  }

  test('of a failed run is an error with its reason as the code, or its status', () => {
    const failed = { ...DONE, status: 'failed', output: null, errorMessage: 'why' } as const
    const usage = usageRecord(1, 2)
    const [frame] = ended({ ...failed, errorDetail: RawJson.of({ reason: 'max_steps' }) })
    expect(frame).toEqual({
      id: '1.2.0',
      event: 'error',
      data: { run_id: 'the-run', code: 'max_steps', message: 'why', status: 'failed', usage } as never,
    })
    expect(ended({ ...failed, status: 'cancelled', errorMessage: null })[0]!.data).toMatchObject({
      code: 'cancelled',
      message: 'cancelled',
    })
  })

  test('does not exist when an executor releases a run', () => {
    const log = new OutputLog(RUN.runId)
    log.close({ kind: 'released', status: 'running' }, null)
    expect(framesAfter(log, OUTPUT_START)).toMatchObject({ text: '', isOver: false })
    expect(log.isClosed).toBe(true)
  })

  test('is sent once; later readers see that the output is over', () => {
    const log = OutputLog.of({ run: RUN, steps: [stepOf(1, 'x')], calls: [] })
    log.close(DONE, null)
    expect(framesAfter(log, endOf(log))).toMatchObject({ text: '', isOver: true })
  })

  test("stays on one line, whatever the caller's JSON looks like", () => {
    const [frame] = ended({ ...DONE, output: new RawJson('{\n  "a": 1,\r\n  "b": "x\\ny"\n}') })
    expect(frame!.data).toMatchObject({ output: { a: 1, b: 'x\ny' } })
  })
})

test.each(['', '1', '1.0', '1.3.0', 'a.0.0', '1.0.0.', '1.0.0.a b', ' 1.0.0', '1.0.0\n', '9999999999.0.0'])(
  'rejects the frame id %j',
  (text) => {
    expect(parseOutputId(text)).toBeNull()
  },
)
