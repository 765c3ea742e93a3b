import { createLog } from '../../src/base/log.ts'
import { NEXT_CALL_STATUSES, NEXT_PAUSE_STATUSES, NEXT_PHASES } from '../../src/hosted/run/state.ts'
import { connectPostgres } from '../../src/stores/postgres/connect.ts'

const MACHINES: readonly { table: string; column: string; next: Record<string, readonly string[]> }[] = [
  { table: 'hosted_runs', column: 'phase', next: NEXT_PHASES },
  { table: 'tool_calls', column: 'status', next: NEXT_CALL_STATUSES },
  { table: 'pauses', column: 'status', next: NEXT_PAUSE_STATUSES },
]

/** Makes the database reject every transition of a hosted run, a call or a pause that `state.ts` does not list. */
export async function enforceTransitions(databaseUrl: string): Promise<void> {
  const sql = connectPostgres(databaseUrl, { log: createLog('error'), max: 1 })
  for (const { table, column, next } of MACHINES) {
    const legal = Object.entries(next).flatMap(([from, to]) => to.map((each) => `'${from}>${each}'`))
    await sql.unsafe(`
      create function legal_${table}() returns trigger language plpgsql as $$
      begin
        if old.${column} <> new.${column} and old.${column} || '>' || new.${column} not in (${legal}) then
          raise exception 'illegal transition of ${table}: % to %', old.${column}, new.${column};
        end if;
        return new;
      end $$;
      create trigger legal_${table} before update of ${column} on ${table}
        for each row execute function legal_${table}()`)
  }
  await sql.end()
}
