import { Elysia } from 'elysia'
import type { FeatureContext } from './feature.ts'
import { keyRoutes } from './keys/routes.ts'
import { KeyStore } from './keys/store.ts'
import { authRoutes, type SignIn } from './people/auth-routes.ts'
import { peopleRoutes } from './people/routes.ts'
import { PeopleStore } from './people/store.ts'
import { secretRoutes } from './secrets/routes.ts'
import { SecretStore } from './secrets/store.ts'
import type { Vault } from './secrets/vault.ts'
import { type OwnWorkspaceDeps, ownWorkspaceRoutes, workspaceRoutes } from './workspaces/routes.ts'
import { WorkspaceStore } from './workspaces/store.ts'

interface TenantsDeps extends Pick<OwnWorkspaceDeps, 'eventRetentionDays' | 'recount'> {
  /** How people sign in; undefined where that is not configured. */
  readonly signIn: SignIn | undefined
  readonly vault: Vault
}

/** Who calls, and what they manage: keys, people, workspaces, secrets. */
export function createTenants(context: FeatureContext, { signIn, vault, eventRetentionDays, recount }: TenantsDeps) {
  const { sql, ring, clock, log, guards, addressOf, takeRead } = context
  const keys = new KeyStore({ sql, ring, clock })
  const people = new PeopleStore({ sql, ring, clock })
  const workspaces = new WorkspaceStore({ sql, ring, clock })
  const secrets = new SecretStore({ sql, clock, vault })
  const routes = new Elysia()
    .use(keyRoutes({ guards, keys }))
    .use(peopleRoutes({ guards, people }))
    .use(authRoutes({ guards, ring, people, signIn, addressOf, takeBudget: takeRead, log }))
    .use(secretRoutes({ guards, secrets }))
    .use(workspaceRoutes({ guards, workspaces, keys }))
    .use(ownWorkspaceRoutes({ guards, workspaces, eventRetentionDays, recount }))
  return { routes, secrets, workspaces }
}
