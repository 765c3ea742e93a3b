/**
 * Limits of a request (docs/specification.md#request-limits), published by `GET /api/v1/limits`. Sizes in bytes, lengths
 * in characters.
 */
export interface Limits {
  readonly body_bytes: number
  readonly events_per_call: number
  readonly event_payload_bytes: number
  readonly run_input_bytes: number
  readonly run_output_bytes: number
  /** The system prompt of a hosted run, its placeholders filled. */
  readonly prompt_length: number
  readonly type_length: number
  readonly task_name_length: number
  readonly external_id_length: number
  readonly tags: number
  readonly tag_length: number
  readonly json_depth: number
  /** An OpenTelemetry export. */
  readonly otlp_bytes: number
  /** External agents of a workspace beyond which OpenTelemetry exports register none. */
  readonly otlp_agents: number
}

const MIB = 1024 * 1024

/** Default and bounds of each limit, whose variable is `LIMIT_` and the name in capitals. Without bounds it is fixed. */
export const LIMITS: Record<keyof Limits, readonly [fallback: number, min?: number, max?: number]> = {
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
}
