import { shortened } from '../../../base/code-points.ts'
import { type Media, withoutBlobs } from '../../../base/conventions/messages/blobs.ts'
import type { ChatPart } from '../../../base/conventions/messages/message-parts.ts'
import { RawJson } from '../../../base/raw-json.ts'
import type { MessagePart } from './schema.ts'

/** A longer text or value of a part is cut. */
const TEXT_MAX = 64 * 1024
/** What is left of a value, as text. */
const BEGINNING_LENGTH = 2_000
const NAME_MAX = 500
/** Of a message with more parts the others are left out. */
const PARTS_MAX = 200

/** Parts of a message as clients see them. */
export class PartsOnWire {
  readonly parts: MessagePart[] = []
  isTruncated = false
  /** About how long they are as JSON. */
  length = 0

  constructor(parts: readonly ChatPart[]) {
    this.isTruncated = parts.length > PARTS_MAX
    for (const part of parts.slice(0, PARTS_MAX)) this.parts.push(this.part(part))
  }

  name(text: string): string {
    return this.cut(text, NAME_MAX)
  }

  private part(part: ChatPart): MessagePart {
    this.length += 100
    switch (part.type) {
      case 'text':
      case 'reasoning':
        return { type: part.type, text: this.cut(part.text, TEXT_MAX) }
      case 'call':
        return { type: 'tool_call', id: this.id(part.id), name: this.name(part.name), arguments: this.json(part.input) }
      case 'result':
        return {
          type: 'tool_result',
          id: this.id(part.id),
          result: this.json(part.value),
          failed: part.isFailed === true,
        }
      case 'media':
        return this.media(part.media)
      case 'other':
        return { type: 'other', value: this.json(part.value) }
    }
  }

  private media({ name, mediaType, bytes, href }: Media): MessagePart {
    const media_type = mediaType === null ? null : this.name(mediaType)
    return {
      type: 'media',
      kind: name,
      media_type,
      bytes,
      url: href === null ? null : this.cut(href, BEGINNING_LENGTH),
    }
  }

  private id(id: string | null): string | null {
    return id === null ? null : this.name(id)
  }

  private cut(text: string, max: number): string {
    const short = shortened(text, max)
    if (short !== text) this.isTruncated = true
    this.length += short.length
    return short
  }

  private json(value: unknown): RawJson {
    const json = JSON.stringify(withoutBlobs(value)) ?? 'null'
    if (json.length <= TEXT_MAX) {
      this.length += json.length
      return new RawJson(json)
    }
    return RawJson.of(this.cut(json, BEGINNING_LENGTH))
  }
}
