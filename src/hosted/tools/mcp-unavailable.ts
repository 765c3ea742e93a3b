/**
 * The tools of an MCP server cannot be listed. The message is safe for the caller: it names the tool and the host, never
 * a secret.
 */
export class McpUnavailable extends Error {
  override readonly name = 'McpUnavailable'
}
