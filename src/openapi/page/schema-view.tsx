import { useState } from 'preact/hooks'
import { type Document, resolved, type Schema } from './document.ts'
import { Markdown } from './markdown.tsx'

/** Members of a schema that limit its values, in the order in which they are shown. */
const LIMITS = [
  ['minLength', 'at least', 'characters'],
  ['maxLength', 'at most', 'characters'],
  ['minimum', 'at least', ''],
  ['exclusiveMinimum', 'more than', ''],
  ['maximum', 'at most', ''],
  ['minItems', 'at least', 'items'],
  ['maxItems', 'at most', 'items'],
  ['maxProperties', 'at most', 'members'],
  ['pattern', 'matches', ''],
] as const

interface SchemaProps {
  readonly document: Document
  readonly schema: Schema
}

/** The members of an object, or of the objects of a list; otherwise only the type. */
export function SchemaView({ document, schema }: SchemaProps) {
  const members = membersOf(document, schema)
  if (members.length === 0)
    return (
      <p class="type">
        <Type document={document} schema={schema} />
      </p>
    )
  return (
    <ul class="members">
      {members.map((member) => (
        <Member key={member.name} document={document} {...member} />
      ))}
    </ul>
  )
}

interface MemberProps extends SchemaProps {
  readonly name: string
  readonly isRequired: boolean
}

/** What is inside a member is drawn once it is opened: schemas may contain themselves. */
export function Member({ document, name, schema, isRequired }: MemberProps) {
  const [isOpen, setOpen] = useState(false)
  const { description } = { ...resolved(document, schema), ...schema }
  const head = (
    <>
      <code>{name}</code> {isRequired && <b class="required">required</b>}{' '}
      <span class="type">
        <Type document={document} schema={schema} />
      </span>
    </>
  )
  return (
    <li>
      {membersOf(document, schema).length === 0 ? (
        head
      ) : (
        <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
          <summary>{head}</summary>
          {isOpen && <SchemaView document={document} schema={schema} />}
        </details>
      )}
      {description !== undefined && <Markdown text={description} />}
    </li>
  )
}

function Type({ document, schema }: SchemaProps) {
  const own = resolved(document, schema)
  const limits = LIMITS.flatMap(([name, word, unit]) =>
    // A format says it in words.
    own[name] === undefined || (name === 'pattern' && own.format !== undefined)
      ? []
      : [`${word} ${String(own[name])} ${unit}`.trim()],
  )
  const values = own.default === undefined ? [] : [`default ${JSON.stringify(own.default)}`]
  return <>{[typeOf(document, schema), ...limits, ...values].join(', ')}</>
}

function typeOf(document: Document, schema: Schema): string {
  const own = resolved(document, schema)
  if (own.const !== undefined) return JSON.stringify(own.const)
  if (own.enum !== undefined) return own.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (own.anyOf !== undefined) return [...new Set(own.anyOf.map((each) => typeOf(document, each)))].join(' | ')
  if (own.items !== undefined) return `list of ${typeOf(document, own.items)}`
  const type = [own.type ?? 'any JSON'].flat().join(' | ')
  return own.format === undefined ? type : `${type} (${own.format})`
}

/** The members of an object, of all alternatives, or of the items of a list. */
function membersOf(document: Document, schema: Schema, depth = 0): Omit<MemberProps, 'document'>[] {
  const own = resolved(document, schema)
  // A type that only contains itself has no members.
  if (depth > 8) return []
  if (own.items !== undefined) return membersOf(document, own.items, depth + 1)
  if (own.anyOf !== undefined) {
    const all = own.anyOf.flatMap((each) => membersOf(document, each, depth + 1))
    return [...new Map(all.map((member) => [member.name, member])).values()]
  }
  return Object.entries(own.properties ?? {}).map(([name, each]) => ({
    name,
    schema: each,
    isRequired: own.required?.includes(name) ?? false,
  }))
}
