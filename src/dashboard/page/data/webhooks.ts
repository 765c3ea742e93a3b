import { type Api, listAll } from './api.ts'
import type { Schemas } from './records.ts'

export type Webhook = Schemas['Webhook']
/** With the secret, which is shown once. */
export type NewWebhook = Schemas['NewWebhook']
/** A delivery as of its latest attempt. */
export type Delivery = Schemas['WebhookDelivery']

/** The limit of the service. */
const WEBHOOKS_MAX = 100
export const WEBHOOKS_PATH = '/api/v1/webhooks'

/** All webhooks of the workspace, newest first. @throws ApiFailure */
export async function listWebhooks(api: Api, signal?: AbortSignal): Promise<readonly Webhook[]> {
  return (await listAll<Webhook>(api, WEBHOOKS_PATH, WEBHOOKS_MAX, signal)).items
}

export function pathOf({ webhook_id }: Pick<Webhook, 'webhook_id'>): string {
  return `${WEBHOOKS_PATH}/${webhook_id}`
}

/** The names of all, and of those of these ids that are no longer listed. */
export function namesById(webhooks: readonly Webhook[], ids: readonly string[]): ReadonlyMap<string, string> {
  const names = new Map(webhooks.map((webhook) => [webhook.webhook_id, webhookName(webhook)]))
  for (const id of ids) if (!names.has(id)) names.set(id, `webhook …${id.slice(-8)}`)
  return names
}

/** How people tell webhooks apart: by what somebody wrote about it, or `example.com/hook`. */
export function webhookName({ description, url }: Pick<Webhook, 'description' | 'url'>): string {
  return description || url.replace(/^https?:\/\//, '')
}
