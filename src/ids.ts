import { monotonicFactory } from 'ulid'

/** Mints identifiers. A call with an `Idempotency-Key` gets one that mints the same ids again when it is repeated. */
export interface Mint {
  /** UUID version 7, lower case. */
  uuid(): string
  /** ULID, rising within this process. */
  ulid(): string
}

const nextUlid = monotonicFactory()

export const mint: Mint = {
  uuid: () => Bun.randomUUIDv7(),
  ulid: () => nextUlid(),
}
