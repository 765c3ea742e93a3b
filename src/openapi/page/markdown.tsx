import { marked } from 'marked'

/** A description of the document, which is the service's own text: nothing that callers write is in it. */
export function Markdown({ text }: { readonly text: string }) {
  return <div class="text" dangerouslySetInnerHTML={{ __html: marked.parse(text, { async: false }) }} />
}
