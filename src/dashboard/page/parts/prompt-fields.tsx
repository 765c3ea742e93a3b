import { type Bound, TextField } from './fields.tsx'

interface PromptFieldsProps extends Pick<Bound<Readonly<Record<string, string>>>, 'value' | 'set'> {
  readonly names: readonly string[]
}

/** A field for each placeholder of an agent's prompt. */
export function PromptFields({ names, value, set }: PromptFieldsProps) {
  return names.map((name) => (
    <TextField
      key={name}
      label={name}
      hint="A placeholder of the prompt."
      rows={1}
      value={value[name] ?? ''}
      set={(text) => set({ ...value, [name]: text })}
    />
  ))
}
