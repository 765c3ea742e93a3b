import { Elysia, NotFoundError } from 'elysia'
import type { Forwarder } from '../../keys/forward.ts'
import { COPY_ROUTE } from './output-copy.ts'
import type { ServedOutputs } from './served-outputs.ts'

export interface OutputRoutesDeps {
  readonly forwarder: Pick<Forwarder, 'receive'>
  /** Undefined in a process that works alone. */
  readonly servedOutputs: Pick<ServedOutputs, 'open'> | undefined
}

/** Serves the outputs of runs to other processes. For everybody else there is no such route. */
export function outputRoutes({ forwarder, servedOutputs }: OutputRoutesDeps) {
  return new Elysia({ detail: { hide: true } }).get(COPY_ROUTE, async ({ request, params: { runId } }) => {
    const call = forwarder.receive(request)
    if (call === null || servedOutputs === undefined) throw new NotFoundError()
    const { workspaceId } = call.caller
    const response = await servedOutputs.open({ workspaceId, runId }, request.signal)
    if (response === null) throw new NotFoundError()
    return response
  })
}
