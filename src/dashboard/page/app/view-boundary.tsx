import type { ComponentChildren } from 'preact'
import { useEffect, useErrorBoundary } from 'preact/hooks'
import { address } from '../context/router.ts'
import { failureOf } from '../data/use-load.ts'
import { Problem } from '../parts/states.tsx'

/** Shows what is wrong in place of a view that failed, so that the others stay. The next address is another attempt. */
export function ViewBoundary({ children }: { readonly children: ComponentChildren }) {
  const [error, reset] = useErrorBoundary((thrown) => reportError(thrown))
  const shown = address.value
  useEffect(() => {
    if (error !== undefined) reset()
  }, [shown])
  if (error === undefined) return <>{children}</>
  return (
    <section class="view" aria-label="Failed view">
      <h1>This view has failed</h1>
      <Problem problem={failureOf(error)} retry={reset} />
    </section>
  )
}
