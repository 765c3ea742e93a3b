import { SinkPositionFile } from '../../src/stores/sink/position.ts'
import { Sink, type SinkOptions } from '../../src/stores/sink/sink.ts'

/** Starts a sink whose position is in a file in `dir`. */
export async function startSink({
  dir,
  ...options
}: Omit<SinkOptions, 'position'> & { readonly dir: string }): Promise<Sink> {
  return new Sink({ ...options, position: await SinkPositionFile.open(dir) })
}
