import type { Model } from './model.ts'
import type { OpenAiOptions } from './openai.ts'

/** An OpenAI model whose SDK is loaded by the first request, because a process without hosted runs never needs it. */
export function openAiOnDemand(options: OpenAiOptions): Model {
  let model: Promise<Model> | undefined
  return {
    async ask(request, signal) {
      model ??= import('./openai.ts').then(({ createOpenAiModel }) => createOpenAiModel(options))
      return (await model).ask(request, signal)
    },
  }
}
