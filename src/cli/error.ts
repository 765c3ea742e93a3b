/** Something the person at the terminal can put right: its message is all they need. */
export class CliError extends Error {
  constructor(
    message: string,
    /** 2 for a command line that makes no sense, 1 for everything else. */
    readonly exitCode: 1 | 2 = 1,
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.name = 'CliError'
  }
}
