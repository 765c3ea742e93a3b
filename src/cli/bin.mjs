#!/usr/bin/env node
// The command of the package `agent-run-service`. It runs on Node and starts the programs with Bun, a dependency of the package.
// In a clone, the scripts of package.json do the same.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { constants } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

/** The program of each command, with its first arguments. */
const PROGRAMS = new Map([
  ['start', ['src/main.ts']],
  ['tail', ['src/cli/tail/main.ts']],
  ['sql', ['src/cli/sql/main.ts']],
  ['keys', ['src/cli/keys/main.ts']],
  ['backup', ['src/cli/backup/main.ts', 'backup']],
  ['restore', ['src/cli/backup/main.ts', 'restore']],
  ['demo', ['src/cli/demo/main.ts']],
])

const HELP = `Starts the Agent Run Service, or one of its programs.

  npx agent-run-service [start] [--data <folder>]
  npx agent-run-service ${[...PROGRAMS.keys()].slice(1).join('|')} [options]

  --data <folder>  journal and embedded stores; default: $DATA_DIR, or ./data
  --version        shows the version
  --help           shows this, or the help of a program: npx agent-run-service tail --help

Environment variables configure the service: docs/operations.md of the package
`

/** The environment that the script `start` of package.json sets. */
const START_ENV = {
  NODE_ENV: 'production',
  MIMALLOC_PURGE_DELAY: '10000',
  BUN_CONFIG_MAX_HTTP_REQUESTS: '10000',
  GLIBC_TUNABLES: 'glibc.cpu.x86_rep_movsb_threshold=1073741824',
}

function main() {
  const [first = 'start', ...rest] = process.argv.slice(2)
  const isCommand = PROGRAMS.has(first)
  if (!isCommand && !first.startsWith('-')) fail(`there is no command "${first}"; --help lists them`)
  const command = isCommand ? first : 'start'
  const args = isCommand ? rest : process.argv.slice(2)
  if (command === 'start' && args.includes('--help')) return process.stdout.write(HELP)
  if (!isCommand && args.includes('--version')) return process.stdout.write(`${version}\n`)
  const dataDir = takeDataDir(args)
  run([...PROGRAMS.get(command).map((each, i) => (i === 0 ? join(ROOT, each) : each)), ...args], {
    ...process.env,
    ...(command === 'start' && START_ENV),
    ...(dataDir !== undefined && { DATA_DIR: resolve(dataDir) }),
  })
}

/** Removes `--data` from the arguments. @returns its value */
function takeDataDir(args) {
  const at = args.findIndex((each) => each === '--data' || each.startsWith('--data='))
  if (at < 0) return undefined
  const [given] = args.splice(at, 1)
  const value = given === '--data' ? args.splice(at, 1)[0] : given.slice('--data='.length)
  return value || fail('--data needs a folder')
}

/** Runs a program and exits with its code. SIGTERM is passed on to it; a terminal sends Ctrl-C to both processes. */
function run(args, env) {
  const child = spawn(findBun(), args, { env, stdio: 'inherit' })
  process.on('SIGTERM', () => child.kill('SIGTERM'))
  process.on('SIGINT', () => {})
  child.on('error', (error) => fail(`bun cannot be run: ${error.message}`))
  child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]))
}

/** Bun's binary for this platform. Its package stores it as `bun.exe` on all platforms when it is installed. */
function findBun() {
  const require = createRequire(join(ROOT, 'package.json'))
  return join(dirname(require.resolve('bun/package.json')), 'bin', 'bun.exe')
}

function fail(problem) {
  process.stderr.write(`agent-run-service: ${problem}\n`)
  process.exit(2)
}

main()
