import { expect, test } from 'bun:test'
import { clientAddress, parseProxyRanges } from '../../src/base/http/client-address.ts'

test.each([
  ['10.0.0.1', null, '', '10.0.0.1'],
  ['::ffff:10.0.0.1', null, '', '10.0.0.1'],
  ['2001:db8:1:2:3:4:5:6', null, '', '2001:db8:1:2::/64'],
  // X-Forwarded-For counts only behind a listed proxy.
  ['10.0.0.1', '1.2.3.4', '', '10.0.0.1'],
  ['10.0.0.1', '1.2.3.4', '10.0.0.0/8', '1.2.3.4'],
  ['::ffff:10.0.0.1', '1.2.3.4', '10.0.0.1', '1.2.3.4'],
  // Entries further to the left come from the client itself.
  ['10.0.0.1', '8.8.8.8, 1.2.3.4', '10.0.0.0/8', '1.2.3.4'],
  ['10.0.0.1', '8.8.8.8, 1.2.3.4, 10.0.0.2', '10.0.0.0/8', '1.2.3.4'],
  ['10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.0/8', '10.0.0.3'],
  ['10.0.0.1', 'rubbish', '10.0.0.0/8', '10.0.0.1'],
  ['10.0.0.1', '', '10.0.0.0/8', '10.0.0.1'],
  ['10.0.0.1', '2001:db8:1:2:3:4:5:6', '10.0.0.0/8, fd00::/8', '2001:db8:1:2::/64'],
  ['', '1.2.3.4', '10.0.0.0/8', ''],
])('counts a connection from %p with X-Forwarded-For %p, trusting %p, as %p', (peer, forwarded, trusted, name) => {
  expect(clientAddress(peer, forwarded, parseProxyRanges(trusted))).toBe(name)
})
