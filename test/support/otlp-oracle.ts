import type protobuf from 'protobufjs'
import type { AnyValue, Attributes, LogRecord, Resource, Span } from '../../src/doors/traces/telemetry.ts'

/** What a message of OTLP means, read from what protobufjs decodes. */

// biome-ignore lint/suspicious/noExplicitAny: what protobufjs decodes has no types.
type Json = Record<string, any>

export function spansOf(data: Json): Span[] {
  return itemsOf(data, ['resourceSpans', 'scopeSpans', 'spans'], (span, resource, scope) => ({
    ...{ resource, scope, ...idsOf(span), parentSpanId: hexOf(span.parentSpanId), name: span.name, kind: span.kind },
    ...{ startNano: Number(span.startTimeUnixNano), endNano: Number(span.endTimeUnixNano) },
    attributes: attributesOf(span.attributes),
    events: span.events.map((event: Json) => ({
      timeNano: Number(event.timeUnixNano),
      name: event.name,
      attributes: attributesOf(event.attributes),
    })),
    links: span.links.map((link: Json) => ({ ...idsOf(link), attributes: attributesOf(link.attributes) })),
    statusCode: span.status?.code ?? 0,
    statusMessage: span.status?.message ?? '',
  }))
}

export function logsOf(data: Json): LogRecord[] {
  return itemsOf(data, ['resourceLogs', 'scopeLogs', 'logRecords'], (record, resource, scope) => ({
    ...{ resource, scope, ...idsOf(record), eventName: record.eventName },
    ...{ timeNano: Number(record.timeUnixNano), observedNano: Number(record.observedTimeUnixNano) },
    ...{ severityNumber: record.severityNumber, severityText: record.severityText },
    ...{ body: anyValueOf(record.body), attributes: attributesOf(record.attributes) },
  }))
}

/** A decoded message as an object with all its fields. */
export function objectOf(type: protobuf.Type, bytes: Uint8Array): Json {
  return type.toObject(type.decode(bytes), { longs: String, arrays: true, defaults: true, oneofs: true })
}

function itemsOf<Item>(
  data: Json,
  [groups, scopes, items]: [string, string, string],
  read: (item: Json, resource: Resource, scope: string) => Item,
): Item[] {
  return data[groups].flatMap((group: Json) => {
    const resource = { attributes: attributesOf(group.resource?.attributes ?? []) }
    return group[scopes].flatMap((scoped: Json) =>
      scoped[items].map((item: Json) => read(item, resource, scoped.scope?.name ?? '')),
    )
  })
}

function idsOf({ traceId, spanId }: Json): { traceId: string; spanId: string } {
  return { traceId: hexOf(traceId), spanId: hexOf(spanId) }
}

function hexOf(id: Uint8Array | []): string {
  return Buffer.from(id).toString('hex')
}

function attributesOf(list: readonly Json[]): Attributes {
  return new Map(list.map(({ key, value }) => [key, anyValueOf(value)]))
}

function anyValueOf(value: Json | null | undefined): AnyValue {
  const sent = value?.[value.value]
  if (value?.value === 'intValue') return Number.isSafeInteger(Number(sent)) ? Number(sent) : BigInt(sent)
  if (value?.value === 'doubleValue') return Number.isFinite(sent) ? sent : String(sent)
  if (value?.value === 'arrayValue') return sent.values.map(anyValueOf)
  if (value?.value === 'kvlistValue') return attributesOf(sent.values)
  return value?.value === 'bytesValue' ? Buffer.from(sent).toString('base64') : (sent ?? null)
}
