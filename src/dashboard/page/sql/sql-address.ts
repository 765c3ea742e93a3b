import { addressState, type Member, oneOf, texts } from '../context/address-state.ts'
import { timeState } from '../parts/range.tsx'
import { type ChartChoice, readChoice, writeChoice } from './chart-plan.ts'

const choice: Member<ChartChoice> = { read: readChoice, write: (given) => writeChoice(given) ?? '' }

/** The SQL view in its address: a query, the saved one that it is, and how its result is shown. */
export const SQL = addressState({ ...texts('q', 'saved'), as: oneOf(['table', 'chart']), chart: choice })
/** The time range of placeholders. */
export const SQL_TIME = timeState('24h')
