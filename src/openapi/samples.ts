import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Reads a text of the reference page, from the Markdown files in `page`. */
const read = (name: string) => readFileSync(join(import.meta.dir, 'page', name), 'utf8')

/** The languages of samples, by the language of their fenced code block. */
const LANGUAGES = new Map([
  ['sh', { lang: 'Shell', label: 'curl' }],
  ['ts', { lang: 'TypeScript', label: 'TypeScript' }],
  ['python', { lang: 'Python', label: 'Python' }],
])

/** The introduction of the reference page: from a key to the first run, query and feed. */
export function introduction(): string {
  return read('introduction.md')
}

/** The samples by operation id, as values of OpenAPI's `x-codeSamples`. A test runs all of them. */
export function readSamples(): ReadonlyMap<string, readonly object[]> {
  const sections = read('samples.md').split(/^## /m).slice(1)
  return new Map(sections.map((section) => [section.slice(0, section.indexOf('\n')), samplesIn(section)]))
}

function samplesIn(section: string): readonly object[] {
  const fences = section.matchAll(/^```(\w+)\n(.*?)\n```$/gms)
  return Array.from(fences, ([, language = '', source]) => ({ ...LANGUAGES.get(language), source }))
}
