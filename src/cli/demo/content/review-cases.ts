interface ReviewedFile {
  readonly path: string
  readonly lines: number
  /** What the reviewer says about it; undefined: nothing. */
  readonly finding?: string
}

export interface ReviewCase {
  readonly repository: string
  readonly title: string
  readonly files: readonly ReviewedFile[]
  readonly verdict: string
  /** After the author has pushed again. */
  readonly second?: string
}

export const REVIEW_CASES: readonly ReviewCase[] = [
  {
    repository: 'larkspur/storefront',
    title: 'Pagination skips an item when two rows share a timestamp',
    files: [
      {
        path: 'src/list/cursor.ts',
        lines: 84,
        finding:
          'The cursor compares only `created_at`. Two rows with the same millisecond still collide: add the id as second key.',
      },
      { path: 'src/list/query.ts', lines: 132 },
      {
        path: 'test/list.test.ts',
        lines: 61,
        finding: 'Please add a case with three equal timestamps over a page boundary.',
      },
    ],
    verdict: 'Right direction. One correctness problem in `cursor.ts`, and a missing test. **Changes requested.**',
    second: 'Both points are solved, and the new test fails without the change. **Approved.**',
  },
  {
    repository: 'larkspur/checkout',
    title: 'Retry captures when the payment provider times out',
    files: [
      {
        path: 'src/payments/capture.ts',
        lines: 148,
        finding: 'A retry without an `Idempotency-Key` can capture twice. Derive the key from the payment id.',
      },
      { path: 'src/payments/backoff.ts', lines: 37 },
      { path: 'src/payments/types.ts', lines: 90 },
      { path: 'src/payments/README.md', lines: 55 },
    ],
    verdict:
      'The retry itself is fine, but as written **it can charge a customer twice**. Must be fixed before merging.',
    second: 'The key is derived and tested against the sandbox. **Approved.**',
  },
  {
    repository: 'larkspur/mobile',
    title: 'Dark mode flickers on first load',
    files: [
      { path: 'app/theme/provider.tsx', lines: 72 },
      {
        path: 'app/theme/tokens.ts',
        lines: 210,
        finding: '`surfaceRaised` in dark mode has a contrast of 3.9:1 with `textMuted`; AA needs 4.5:1.',
      },
    ],
    verdict:
      'Good fix, it reads the preference before the first paint. One contrast value to correct. **Approved with a comment.**',
  },
  {
    repository: 'larkspur/warehouse',
    title: 'Claim picking jobs with SKIP LOCKED',
    files: [
      {
        path: 'db/migrations/0042_claims.sql',
        lines: 28,
        finding: 'The partial index should include `priority`, or the claim sorts the whole queue.',
      },
      { path: 'src/jobs/claim.ts', lines: 96 },
      {
        path: 'src/jobs/lease.ts',
        lines: 64,
        finding: 'If the clock jumps back the lease never ends. Use the time of the database.',
      },
    ],
    verdict: 'Removes the race that we saw in March. Two findings, neither blocks. **Approved with comments.**',
  },
  {
    repository: 'larkspur/infra',
    title: 'Rotate database credentials every 30 days',
    files: [
      { path: 'modules/db/rotation.tf', lines: 118 },
      {
        path: 'modules/db/outputs.tf',
        lines: 22,
        finding: 'This output prints the password into the plan. Mark it `sensitive`.',
      },
    ],
    verdict: '**Changes requested**: a secret would end up in the logs of CI.',
    second: 'The output is sensitive now, and the old value is revoked. **Approved.**',
  },
]
