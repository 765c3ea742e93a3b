import { ApiError } from '../../base/errors.ts'

/** What gave a score, in the order of the enum in ClickHouse, whose values start from 1. */
export const SCORE_SOURCES = ['api', 'person', 'judge', 'import'] as const
export type ScoreSource = (typeof SCORE_SOURCES)[number]

/** What a score says first, in the order of the enum in ClickHouse, whose values start from 1. */
export const DATA_TYPES = ['number', 'boolean', 'label', 'text'] as const

/** Refuses a score with the id of a deleted one. */
export function scoreErased(): ApiError {
  return new ApiError('CONFLICT', 'a score with this id was deleted', { reason: 'id_taken' })
}
