import { beforeAll, expect, test } from 'bun:test'
import { startTestService, type TestService } from '../support/service.ts'

/** What a browser does with answers of `/clickhouse/`, whose content and format others may have chosen. */

let service: TestService

beforeAll(async () => {
  service = await startTestService()
})

test.each([
  ['rows', '/clickhouse/?query=select+1', 200],
  ['a page in rows', "/clickhouse/?query=select+'<script>alert(1)</script>'+format+RawBLOB", undefined],
  ['an error', '/clickhouse/?query=selec', 400],
  ['a ping', '/clickhouse/ping', 200],
  ['a greeting', '/clickhouse/', 200],
])('a browser saves %s, and neither shows nor runs it', async (_, path, status) => {
  for (const method of ['GET', 'POST'].slice(0, path.includes('?') ? 2 : 1)) {
    const response = await fetch(service.url + path, {
      method,
      headers: { authorization: `Bearer ${service.workspaceKey}` },
    })
    const { headers } = response
    const text = await response.text()
    if (status !== undefined) expect({ method, status: response.status, text }).toMatchObject({ status })
    expect({
      sniffing: headers.get('x-content-type-options'),
      disposition: headers.get('content-disposition'),
      policy: headers.get('content-security-policy'),
    }).toEqual({
      sniffing: 'nosniff',
      disposition: 'attachment',
      policy: "default-src 'none'; sandbox; frame-ancestors 'none'",
    })
  }
})
