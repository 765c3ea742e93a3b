import type { Model } from './model.ts'
import type { OpenAiOptions } from './openai.ts'

/** An OpenAI model whose SDK is loaded by the first request, because a process without hosted runs never needs it. */
export function openAiOnDemand(options: OpenAiOptions): Model {
  let model: Promise<Model> | undefined
  return {
    async ask(request, signal) {
      model ??= load(options).catch((error) => {
        // The next request tries again.
        model = undefined
        throw error
      })
      return (await model).ask(request, signal)
    },
  }
}

async function load(options: OpenAiOptions): Promise<Model> {
  const { createOpenAiModel } = await import('./openai.ts')
  return createOpenAiModel(options)
}
