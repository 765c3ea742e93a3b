/**
 * Configuration of the embedded engine, written next to its data. The defaults of ClickHouse suit a server of its own
 * with 32 GB; this one shares a small machine with the service.
 */
export function serverConfig(memoryBytes: number): string {
  const settings: Record<string, number> = {
    // Half of the machine at most, whatever queries ask for.
    max_server_memory_usage: Math.floor(memoryBytes / 2),
    mark_cache_size: 64 * MIB,
    index_mark_cache_size: 16 * MIB,
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
    // A thread ends with its work: one that a tenant's query has started has a low priority, which nothing may inherit.
    max_thread_pool_free_size: 0,
    background_schedule_pool_initial_size: 1,
    // One query alone uses all processors, several at once have about one thread each.
    concurrent_threads_soft_limit_ratio_to_cores: 1,
    // Merges can wait: under load they only have what inserts, queries and the service leave over.
    os_threads_nice_value_merge_mutate: 15,
    // Memory of a big query goes back to the system in seconds even if nothing runs after it.
    jemalloc_enable_background_threads: 1,
    jemalloc_max_background_threads_num: 1,
  }
  const lines = Object.entries(settings).map(([name, value]) => `  <${name}>${value}</${name}>`)
  return `<clickhouse>\n${lines.join('\n')}\n</clickhouse>\n`
}

const MIB = 1024 * 1024
