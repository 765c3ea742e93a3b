import type { Model } from './model.ts'
import type { OpenAiOptions } from './openai.ts'

/** The OpenAI model, with its SDK loaded by the first request: a start without hosted runs does not need it. */
export function openAiOnDemand(options: OpenAiOptions): Model {
  let model: Promise<Model> | undefined
  return {
    async ask(request, signal) {
      model ??= import('./openai.ts').then(({ createOpenAiModel }) => createOpenAiModel(options))
      return (await model).ask(request, signal)
    },
  }
}
