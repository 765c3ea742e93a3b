import { afterAll } from 'bun:test'
import { endAll } from './teardown.ts'

// The stores that tests share start when first asked for and end with the last test file.
afterAll(endAll, 30_000)
