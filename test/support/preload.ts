import { afterAll, setDefaultTimeout } from 'bun:test'
import { endAll } from './teardown.ts'

// A machine may be slow; and Bun ends every child process when a test times out, the shared stores among them.
setDefaultTimeout(30_000)

// The stores that tests share start when first asked for and end with the last test file.
afterAll(endAll, 30_000)
