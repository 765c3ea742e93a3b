import { type Bound, TextField } from './fields.tsx'

interface PromptFieldsProps extends Bound<Readonly<Record<string, string>>> {
  readonly names: readonly string[]
  /** What was refused at a place of the request's body. */
  readonly refusedAt: (place: string) => string
}

/** A field for each placeholder of an agent's prompt. */
export function PromptFields({ names, value, set, refusedAt }: PromptFieldsProps) {
  return names.map((name) => {
    const place = `prompt_variables.${name}`
    return (
      <TextField
        key={name}
        name={place}
        label={name}
        hint="A placeholder of the prompt."
        rows={1}
        value={value[name] ?? ''}
        set={(text) => set({ ...value, [name]: text })}
        problem={refusedAt(place)}
      />
    )
  })
}
