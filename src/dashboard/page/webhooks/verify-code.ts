import type { Webhook } from '../data/webhooks.ts'

/** The secret is a variable, because code is shown and stored in more places than secrets should be. */
const WITH_SECRET = `// npm install standardwebhooks
import { Webhook } from 'standardwebhooks'

// whsec_…, from wherever your program keeps its secrets.
const webhook = new Webhook(secret)

export default async function receive(request) {
  // Throws if the signature is invalid. Pass the body exactly as it was received.
  const headers = Object.fromEntries(request.headers)
  const { type, data, cursor } = webhook.verify(await request.text(), headers)
  // The same id comes again when a message is retried, resent or recovered.
  const id = request.headers.get('webhook-id')
  return new Response(null, { status: 204 })
}`

/** Code for a receiver of a webhook, which verifies its deliveries. */
export function verifyCode({ signing, public_key }: Pick<Webhook, 'signing' | 'public_key'>): string {
  return signing === 'v1' ? WITH_SECRET : withPublicKey(public_key ?? '')
}

function withPublicKey(publicKey: string): string {
  return `import { createPublicKey, verify } from 'node:crypto'

const x = Buffer.from('${publicKey.replace(/^whpk_/, '')}', 'base64').toString('base64url')
const key = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } })

export default async function receive(request) {
  const header = (name) => request.headers.get(\`webhook-\${name}\`) ?? ''
  const timestamp = header('timestamp')
  const signed = Buffer.from(\`\${header('id')}.\${timestamp}.\${await request.text()}\`)
  const isValid = header('signature').split(' ').some((each) => {
    const [version, signature] = each.split(',')
    return version === 'v1a' && verify(null, signed, key, Buffer.from(signature, 'base64'))
  })
  const isRecent = Math.abs(Date.now() / 1000 - Number(timestamp)) < 300
  return new Response(null, { status: isValid && isRecent ? 204 : 401 })
}`
}
