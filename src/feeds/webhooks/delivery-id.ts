/** The activity that a delivery is about. */
interface Delivered {
  readonly webhookId: string
  readonly epoch: string
  readonly seq: number
}

const DELIVERY_ID = /^msg_([\da-f]{8})([\da-f]{4})([\da-f]{4})([\da-f]{4})([\da-f]{12})_([\w-]{1,64})_(\d{1,15})$/

/**
 * The id of a delivery, its `webhook-id`. It follows from the activity, so that it is the same over retries, resends and
 * recoveries. Contains no dot, because a signature joins it to the rest with dots.
 */
export function deliveryIdOf({ webhookId, epoch, seq }: Delivered): string {
  return `msg_${webhookId.replaceAll('-', '')}_${epoch}_${seq}`
}

/** Null if the text is not the id of a delivery. */
export function parseDeliveryId(text: string): Delivered | null {
  const match = DELIVERY_ID.exec(text)
  if (match === null) return null
  const [, a, b, c, d, e, epoch = '', seq] = match
  return { webhookId: [a, b, c, d, e].join('-'), epoch, seq: Number(seq) }
}
