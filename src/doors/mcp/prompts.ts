import { invalid } from '../../base/errors.ts'
import { shown } from '../../base/http/validation-message.ts'
import { EXAMPLES, type ExampleQuery } from '../../sql/analytics/examples.ts'
import type { PromptDefinition, PromptProvider } from './provider.ts'

/** The example queries of the dashboard as prompts. Like SQL, they are for workspace keys. */
export function examplePrompts(examples: readonly ExampleQuery[] = EXAMPLES): PromptProvider {
  const byName = new Map(examples.map((example) => [promptName(example), example]))
  const definitions = [...byName].map(([name, example]) => definitionOf(name, example))
  return {
    list: ({ caller }) => (caller.type === 'workspace' ? definitions : []),
    get: ({ caller }, name, given) => {
      const example = caller.type === 'workspace' ? byName.get(name) : undefined
      if (example === undefined) return undefined
      return { description: example.description, text: promptText(example, given) }
    },
  }
}

/** `error-rate-by-agent` */
function promptName({ title }: ExampleQuery): string {
  return title.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')
}

function definitionOf(name: string, { title, description, params = {} }: ExampleQuery): PromptDefinition {
  return {
    name,
    title,
    description,
    arguments: Object.entries(params).map(([parameter, fallback]) => ({
      name: parameter,
      description: `Default: ${JSON.stringify(fallback)}.`,
      required: false,
    })),
  }
}

function promptText(
  { title, description, query, params = {} }: ExampleQuery,
  given: ReadonlyMap<string, string>,
): string {
  for (const name of given.keys())
    if (!Object.hasOwn(params, name))
      throw invalid(`params.arguments[${shown(name)}]`, `unknown argument; expected ${namesOf(params)}`)
  const values = { ...params, ...Object.fromEntries(given) }
  const withParams = Object.keys(values).length === 0 ? '' : `\n\nwith these params:\n\n${JSON.stringify(values)}`
  return (
    `${title}: ${description}\n\nRun this SQL with the tool query, adapt it if that is needed, and explain the result:\n\n` +
    `\`\`\`sql\n${query}\n\`\`\`${withParams}`
  )
}

function namesOf(params: object): string {
  const names = Object.keys(params)
  return names.length === 0 ? 'none' : `only ${names.join(', ')}`
}
