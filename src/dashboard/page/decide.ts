/** Sends a decision on a pause. The form is disabled until the service has answered. */
export type Decide = (action: 'approve' | 'reject' | 'answer', body: object) => void
