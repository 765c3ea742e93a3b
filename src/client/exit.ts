/** Lets clients send what is left before the process ends. One set of listeners serves all clients. */

type Finish = () => Promise<unknown>

const SIGNALS = ['SIGTERM', 'SIGINT'] as const

const finishers = new Set<Finish>()
let isListening = false

/** Calls `finish` when nothing is left to do, and on SIGTERM and SIGINT. @returns a function that undoes it */
export function onExit(finish: Finish): () => void {
  finishers.add(finish)
  listen()
  return () => {
    finishers.delete(finish)
    if (finishers.size === 0) ignore()
  }
}

function listen(): void {
  if (isListening) return
  isListening = true
  process.once('beforeExit', finishAll)
  for (const signal of SIGNALS) process.on(signal, finishAndEnd)
}

function ignore(): void {
  isListening = false
  process.off('beforeExit', finishAll)
  for (const signal of SIGNALS) process.off(signal, finishAndEnd)
}

async function finishAll(): Promise<void> {
  await Promise.all([...finishers].map((finish) => finish()))
}

/**
 * A process that handles the signal itself decides when to end. Otherwise the signal terminates it as usual; a second one
 * terminates it immediately.
 */
async function finishAndEnd(signal: NodeJS.Signals): Promise<void> {
  const isOurs = process.listenerCount(signal) === 1
  if (isOurs) process.off(signal, finishAndEnd)
  await finishAll()
  if (isOurs) process.kill(process.pid, signal)
}
