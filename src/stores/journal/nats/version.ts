/** Whether a server is older than 2.10, which docs/cluster.md asks for. @param version such as `2.9.10` */
export function isOldNats(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major * 100 + minor < 210
}

/** The version in what `nats-server --version` prints; empty if there is none. */
export function versionIn(printed: string): string {
  return /v(\d+\.\d+)/.exec(printed)?.[1] ?? ''
}
