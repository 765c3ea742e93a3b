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

/** Thrown for `--help`. The message is the help text; the command prints it and exits. */
export class HelpRequest extends Error {
  override readonly name = 'HelpRequest'
}
