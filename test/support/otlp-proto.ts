import protobuf from 'protobufjs'

/** The messages of `opentelemetry/proto` 1.x, with their numbers: what protobufjs encodes and decodes in tests. */
const PROTO = `
syntax = "proto3";
package otlp;
message AnyValue { oneof value {
  string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4;
  ArrayValue array_value = 5; KeyValueList kvlist_value = 6; bytes bytes_value = 7; } }
message ArrayValue { repeated AnyValue values = 1; }
message KeyValueList { repeated KeyValue values = 1; }
message KeyValue { string key = 1; AnyValue value = 2; }
message InstrumentationScope { string name = 1; string version = 2; repeated KeyValue attributes = 3;
  uint32 dropped_attributes_count = 4; }
message Resource { repeated KeyValue attributes = 1; uint32 dropped_attributes_count = 2; }
message Status { string message = 2; int32 code = 3; }
message Event { fixed64 time_unix_nano = 1; string name = 2; repeated KeyValue attributes = 3;
  uint32 dropped_attributes_count = 4; }
message Link { bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; repeated KeyValue attributes = 4;
  uint32 dropped_attributes_count = 5; fixed32 flags = 6; }
message Span { bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; bytes parent_span_id = 4;
  string name = 5; int32 kind = 6; fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8;
  repeated KeyValue attributes = 9; uint32 dropped_attributes_count = 10; repeated Event events = 11;
  uint32 dropped_events_count = 12; repeated Link links = 13; uint32 dropped_links_count = 14; Status status = 15;
  fixed32 flags = 16; }
message ScopeSpans { InstrumentationScope scope = 1; repeated Span spans = 2; string schema_url = 3; }
message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; string schema_url = 3; }
message TracesData { repeated ResourceSpans resource_spans = 1; }
message LogRecord { fixed64 time_unix_nano = 1; int32 severity_number = 2; string severity_text = 3; AnyValue body = 5;
  repeated KeyValue attributes = 6; uint32 dropped_attributes_count = 7; fixed32 flags = 8; bytes trace_id = 9;
  bytes span_id = 10; fixed64 observed_time_unix_nano = 11; string event_name = 12; }
message ScopeLogs { InstrumentationScope scope = 1; repeated LogRecord log_records = 2; string schema_url = 3; }
message ResourceLogs { Resource resource = 1; repeated ScopeLogs scope_logs = 2; string schema_url = 3; }
message LogsData { repeated ResourceLogs resource_logs = 1; }
message NumberDataPoint { fixed64 time_unix_nano = 3; sfixed64 as_int = 6; }
message Gauge { repeated NumberDataPoint data_points = 1; }
message Metric { string name = 1; Gauge gauge = 5; }
message ScopeMetrics { InstrumentationScope scope = 1; repeated Metric metrics = 2; }
message ResourceMetrics { Resource resource = 1; repeated ScopeMetrics scope_metrics = 2; }
message MetricsData { repeated ResourceMetrics resource_metrics = 1; }
message PartialSuccess { int64 rejected = 1; string error_message = 2; }
message ExportResponse { PartialSuccess partial_success = 1; }
message RpcStatus { int32 code = 1; string message = 2; }
`

const { root } = protobuf.parse(PROTO)

export const TracesData = root.lookupType('otlp.TracesData')
export const LogsData = root.lookupType('otlp.LogsData')
export const MetricsData = root.lookupType('otlp.MetricsData')
export const ExportResponse = root.lookupType('otlp.ExportResponse')
export const RpcStatus = root.lookupType('otlp.RpcStatus')

/** A message given in the names of OTLP's JSON, but with bytes as buffers, on the wire. */
export function encodeMessage(type: protobuf.Type, message: object): Uint8Array {
  return type.encode(type.fromObject(message)).finish()
}
