import type { Sql, TransactionSql } from '../../stores/postgres/connect.ts'

/**
 * SQL expression: the name of the person who acted, which is their e-mail address or else their name. Null if a key acted.
 * @param actor the column of the id of the person or key
 * @param workspace the column of the workspace
 */
export function personName(sql: Sql | TransactionSql, actor: string, workspace: string) {
  return sql`(
    select coalesce(email, name, subject) from people
    where person_id = ${sql(actor)} and workspace_id = ${sql(workspace)}
  )`
}
