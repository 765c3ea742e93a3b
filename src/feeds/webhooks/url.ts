import { invalid } from '../../base/errors.ts'
import type { EgressAllowList } from '../../outbound/egress/allow-list.ts'
import { EgressRefused } from '../../outbound/egress/errors.ts'
import { checkTarget } from '../../outbound/egress/guard.ts'

/**
 * Refuses the URL of an endpoint to which nothing could be sent. What its name resolves to is checked at each attempt.
 * @throws ApiError VALIDATION_ERROR
 */
export function checkWebhookUrl(url: string, allow: EgressAllowList): void {
  try {
    checkTarget(url, allow)
  } catch (error) {
    if (error instanceof EgressRefused) throw invalid('url', error.message)
    throw error
  }
}
