/** What gave a score, in the order of the enum in ClickHouse, whose values start from 1. */
export const SCORE_SOURCES = ['api', 'person', 'judge', 'import'] as const
export type ScoreSource = (typeof SCORE_SOURCES)[number]

/** What a score says first, in the order of the enum in ClickHouse, whose values start from 1. */
export const DATA_TYPES = ['number', 'boolean', 'label', 'text'] as const
