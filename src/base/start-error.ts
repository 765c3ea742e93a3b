/**
 * A problem that the operator can fix. Its message, without a stack, is printed before the process exits with 1.
 */
export class StartError extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.name = 'StartError'
  }
}
