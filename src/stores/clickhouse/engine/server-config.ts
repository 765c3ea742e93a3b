const MIB = 1024 * 1024

/**
 * Configuration of the embedded engine, written next to its data. ClickHouse's defaults suit a dedicated server with
 * 32 GB; this engine shares a small machine with the service.
 */
export function serverConfig(memoryBytes: number): string {
  const settings: Record<string, number> = {
    // At most half of the machine's memory.
    max_server_memory_usage: Math.floor(memoryBytes / 2),
    mark_cache_size: 64 * MIB,
    index_mark_cache_size: 16 * MIB,
    // Blocks of skip indexes, such as the Bloom filter of `run_id`.
    index_uncompressed_cache_size: 16 * MIB,
    primary_index_cache_size: 64 * MIB,
    query_condition_cache_size: 16 * MIB,
    compiled_expression_cache_size: 16 * MIB,
    vector_similarity_index_cache_size: MIB,
    text_index_tokens_cache_size: MIB,
    text_index_header_cache_size: MIB,
    text_index_postings_cache_size: MIB,
    iceberg_metadata_files_cache_size: MIB,
    parquet_metadata_cache_size: MIB,
    mmap_cache_size: 16,
    // No idle threads are kept: a thread started for a tenant's query has a low priority that others must not inherit.
    max_thread_pool_free_size: 0,
    background_schedule_pool_initial_size: 1,
    // A single query uses all processors; concurrent ones have about one thread each.
    concurrent_threads_soft_limit_ratio_to_cores: 1,
    // Merges have the lowest priority: under load they get the CPU time that inserts, queries and the service leave.
    os_threads_nice_value_merge_mutate: 15,
    // Returns the memory of a large query to the system within seconds, even when idle.
    jemalloc_enable_background_threads: 1,
    jemalloc_max_background_threads_num: 1,
  }
  const lines = Object.entries(settings).map(([name, value]) => `  <${name}>${value}</${name}>`)
  return `<clickhouse>\n${lines.join('\n')}\n</clickhouse>\n`
}
