const MIB = 1024 * 1024

/** How long a workspace may keep its activity: a hundred years. */
export const RETENTION_DAYS_MAX = 36_500

/** Default and bounds of a limit. Without bounds it is fixed. */
export type LimitBounds = readonly [fallback: number, min?: number, max?: number]

/**
 * Limits of a request (docs/api.md#request-limits), published by `GET /api/v1/limits`, which describes each. Sizes in
 * bytes, lengths in characters. The variable of a limit is `LIMIT_` and its name in capitals.
 */
export const LIMITS = {
  body_bytes: [10 * MIB, 1024, 256 * MIB],
  events_per_call: [5_000, 1, 100_000],
  event_payload_bytes: [512 * 1024, 2, 256 * MIB],
  run_input_bytes: [3 * MIB, 2, 256 * MIB],
  run_output_bytes: [10 * MIB, 2, 256 * MIB],
  prompt_length: [1_000_000],
  type_length: [200, 1, 10_000],
  task_name_length: [200, 1, 10_000],
  external_id_length: [255, 1, 2_000],
  tags: [20, 0, 1_000],
  tag_length: [128, 1, 2_000],
  json_depth: [128],
  otlp_bytes: [64 * MIB],
  otlp_agents: [1_000],
} as const satisfies Readonly<Record<string, LimitBounds>>

export type Limits = Readonly<Record<keyof typeof LIMITS, number>>
