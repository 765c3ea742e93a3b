import { afterAll } from 'bun:test'
import { endAll } from './teardown.ts'

// What tests have started ends with the last test file; with `--parallel`, with each file.
afterAll(endAll, 120_000)
