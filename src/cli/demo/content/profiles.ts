import type { Profile } from '../plan.ts'
import { catalogue } from './catalogue.ts'
import { invoices } from './invoices.ts'
import { logAnalyst, onCall } from './on-call.ts'
import { research } from './research.ts'
import { review } from './review.ts'
import { support } from './support.ts'

/** The programs that report to the service. */
export const PROFILES: readonly Profile[] = [support, review, research, invoices, onCall, logAnalyst, catalogue]
