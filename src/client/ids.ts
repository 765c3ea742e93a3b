const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
const PREFIX_BYTES = 8

/** A UUID of version 7: they sort by time. */
export function uuidv7(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  let time = Date.now()
  for (let i = 5; i >= 0; i--) {
    bytes[i] = time % 256
    time = Math.floor(time / 256)
  }
  bytes[6] = 0x70 | (bytes[6]! & 0x0f)
  bytes[8] = 0x80 | (bytes[8]! & 0x3f)
  const hex = Array.from(bytes, (byte) => HEX[byte]).join('')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** Whether it is a UUID of any version. */
export function isUuid(text: string): boolean {
  return /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text)
}

/** Makes ids of events: random digits that this process shares with no other, and a number. */
export function createEventIds(): () => string {
  const prefix = Array.from(crypto.getRandomValues(new Uint8Array(PREFIX_BYTES)), (byte) => HEX[byte]).join('')
  let count = 0
  return () => `${prefix}-${(count++).toString(36)}`
}
