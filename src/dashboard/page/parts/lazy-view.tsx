import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ApiFailure } from '../data/api.ts'
import { Problem, Skeleton } from './states.tsx'

/** For code that is loaded when it is needed. */
export const NOT_LOADED = new ApiFailure(
  'PAGE',
  'A part of this page could not be loaded. If the service has been updated meanwhile, reload the page.',
  0,
)

/** A view whose code is loaded when it is first opened, so that the page itself opens faster. */
export function lazyView<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | undefined
  return function LazyView(props: P) {
    const [hasFailed, setFailed] = useState(false)
    const [, setLoaded] = useState(loaded !== undefined)
    useEffect(() => {
      if (loaded !== undefined) return
      load().then(
        (view) => {
          loaded = view
          setLoaded(true)
        },
        () => setFailed(true),
      )
    }, [])
    const View = loaded
    if (View !== undefined) return <View {...props} />
    return (
      <section class="view" aria-label="Loading">
        {hasFailed ? <Problem problem={NOT_LOADED} retry={() => location.reload()} /> : <Skeleton lines={8} />}
      </section>
    )
  }
}
