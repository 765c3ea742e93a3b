/** An error that the user can fix; only its message is shown. */
export class CliError extends Error {
  constructor(
    message: string,
    /** 2 for an invalid command line, 1 for everything else. */
    readonly exitCode: 1 | 2 = 1,
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.name = 'CliError'
  }
}

/** The user has asked for the help, which is the message: nothing else is to be done. */
export class HelpRequest extends Error {
  override readonly name = 'HelpRequest'
}
