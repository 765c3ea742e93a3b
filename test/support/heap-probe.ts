import { heapStats } from 'bun:jsc'

/** Preloaded into a service: answers on the Unix socket `HEAP_PROBE` with the bytes of its live objects. */

if (process.env.HEAP_PROBE !== undefined)
  Bun.serve({
    unix: process.env.HEAP_PROBE,
    fetch() {
      Bun.gc(true)
      return Response.json(heapStats().heapSize)
    },
  }).unref()
