import { afterAll } from 'bun:test'
import { endAll } from './teardown.ts'

// Everything that tests started ends after the last test file; with `--parallel`, after each file.
afterAll(endAll, 120_000)
