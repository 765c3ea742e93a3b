/** A component that requests depend on. */
export interface Dependency {
  readonly name: string
  /** Whether requests cannot be served without it. When another dependency fails, the service is only `degraded`. */
  readonly essential: boolean
  /** Resolves when it works; rejects with the reason when it does not. */
  check(): Promise<unknown>
}

/** The reason why a dependency does not work. The message is public. */
export class HealthProblem extends Error {}
