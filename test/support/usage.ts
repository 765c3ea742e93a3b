/** The usage of a run as clients see it. */
export function usageRecord(input: number, output: number, parts: object = {}) {
  const none = { cache_read_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0 }
  return { input_tokens: input, output_tokens: output, total_tokens: input + output, ...none, ...parts }
}
