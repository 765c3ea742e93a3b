import { Elysia } from 'elysia'
import { type ClickHouseDoorDeps, createClickHouseDoor } from './clickhouse-door.ts'

/**
 * ClickHouse's HTTP interface, read only: what existing clients and tools speak. Without a guard
 * plugin, because keys come as passwords and errors leave as ClickHouse's.
 */
export function clickHouseRoutes(deps: ClickHouseDoorDeps) {
  const door = createClickHouseDoor(deps)
  const tags = ['SQL']
  return new Elysia({ prefix: '/clickhouse' })
    .get('/ping', () => new Response('Ok.\n'), { detail: { tags, summary: "ClickHouse's sign of life; needs no key" } })
    .get(
      '/',
      ({ request, set }) =>
        new URL(request.url).search === ''
          ? new Response('Ok.\n')
          : door(request, set.headers as Record<string, string | number>),
      { detail: { tags, summary: "ClickHouse's HTTP interface, read only: the query as `?query=`" } },
    )
    .post('/', ({ request, set }) => door(request, set.headers as Record<string, string | number>), {
      parse: 'none',
      detail: { tags, summary: "ClickHouse's HTTP interface, read only: the query as the body" },
    })
}
