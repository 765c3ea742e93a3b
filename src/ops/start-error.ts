/**
 * Something the operator can put right. Its message is the one line that is printed before the process exits with 1.
 */
export class StartError extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.name = 'StartError'
  }
}
