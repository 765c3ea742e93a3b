const has = (...names: string[]) => names.every((name) => Bun.which(name) !== null)

/** What tests need beside Node: packages of Debian, and whether they are there. */
const TOOLS = [
  { packages: 'nats-server', tests: 'the journal on NATS, and of several machines', isThere: () => has('nats-server') },
  { packages: 'curl jq', tests: 'the commands of the guides', isThere: () => has('curl', 'jq') },
  { packages: 'python3', tests: 'the Python client', isThere: () => has('python3') },
  {
    packages: 'python3-setuptools python3-venv python3-wheel',
    tests: 'the package of the Python client',
    isThere: () => packagingPython() !== undefined,
  },
]

/**
 * What is missing here. The tests that need it are skipped, which `bun run test` says at its end; `.ci/run` installs
 * it, and fails where that is not possible.
 */
export function missingTools() {
  return TOOLS.filter(({ isThere }) => !isThere())
}

/** A Python that can build packages: the one of the system, where another one is first on the PATH. */
export function packagingPython(): string | undefined {
  const code = 'import ensurepip, setuptools, venv, wheel'
  const isAble = (path: string | null) => path !== null && Bun.spawnSync([path, '-c', code]).success
  return [Bun.which('python3'), Bun.which('python3', { PATH: '/usr/bin' })].find(isAble) ?? undefined
}
