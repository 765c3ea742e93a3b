import { bodyReader } from '../base/http/body.ts'
import { clientAddress } from '../base/http/client-address.ts'
import { FailureLimit, RateLimiter } from '../base/http/rate-limit.ts'
import { SharedSlice } from '../base/http/shared-slice.ts'
import { mint } from '../base/ids.ts'
import { Idempotency } from '../stores/idempotency/store.ts'
import type { FeatureContext } from '../tenants/feature.ts'
import { payerOf, spendBudget } from '../tenants/keys/budget.ts'
import { createGuards } from '../tenants/keys/guards.ts'
import type { KeyRing } from '../tenants/keys/key-ring.ts'
import type { SignIn } from '../tenants/people/auth-routes.ts'
import { Cookies } from '../tenants/people/cookies.ts'
import { OpenIdProvider } from '../tenants/people/provider.ts'
import { SignIns } from '../tenants/people/sign-ins.ts'
import type { ServiceContext } from './pipeline/context.ts'
import type { Pipeline } from './pipeline/pipeline.ts'
import type { RetentionClock } from './retention/retention-clock.ts'

/** The limit of wrong operator tokens from all addresses together, as a multiple of the limit per address. */
const OPERATOR_ADDRESSES = 10

interface EdgeDeps {
  readonly ring: KeyRing
  readonly pipeline: Pipeline
  readonly retentionClock: RetentionClock
  /** The remote address of a request's connection. */
  readonly peerOf: (request: Request) => string | undefined
}

/** What stands before every route: guards with their budgets, the reader of bodies, and how people sign in. */
export function createEdge(context: ServiceContext, { ring, pipeline, retentionClock, peerOf }: EdgeDeps) {
  const { config, sql, clock, log, dataDir } = context
  const { instanceId } = dataDir
  const { partitions, forwarder, onChange } = pipeline
  const limiter = new RateLimiter(config.rateLimits, { nodes: pipeline.nodes })
  const reader = bodyReader(config)
  const gone = () => ring.gone()
  const idempotency = new Idempotency({ sql, clock, expiryClock: retentionClock, log, instanceId, gone })
  const addressOf = (request: Request) =>
    clientAddress(peerOf(request) ?? '', request.headers.get('x-forwarded-for'), config.trustedProxies)
  const signIn = createSignIn(context, ring)
  const shared = { ring, forwarder, limiter, reader, idempotency, addressOf }
  const guards = createGuards({
    ...shared,
    operatorToken: config.operatorToken,
    operatorAttempts: new FailureLimit({
      what: 'wrong operator tokens',
      perMinute: config.guessing.operatorTokensPerMinute,
      totalPerMinute: config.guessing.operatorTokensPerMinute * OPERATOR_ADDRESSES,
    }),
    feedOrigins: config.feedOrigins,
    signIns: signIn?.cookies,
  })
  const feature: FeatureContext = {
    ...context,
    ...shared,
    partitions,
    onChange,
    guards,
    limits: config.limits,
    publicUrl: config.publicUrl,
    slice: new SharedSlice(),
    takeBudget: (caller, events) => spendBudget(limiter, payerOf(caller), ['events', events]),
    takeRead: (caller) => limiter.take(caller.keyId, 'reads', 1),
  }
  return { feature, signIn }
}

/** How people sign in; undefined where that is not configured. */
function createSignIn({ config, sql, clock, log }: ServiceContext, ring: KeyRing): SignIn | undefined {
  const settings = config.people
  if (settings === undefined) return undefined
  return {
    provider: new OpenIdProvider(settings, log),
    cookies: new Cookies(settings.publicUrl),
    signIns: new SignIns({ sql, ring, clock, mint, settings }),
    takesKeys: settings.takesKeys,
  }
}
