from typing import Dict, Optional, Sequence


class ServiceError(Exception):
    """An error response of the service, or a response that is not the service's."""

    def __init__(
        self,
        status: int,
        *,
        code: Optional[str] = None,
        detail: str = "",
        reason: Optional[str] = None,
        param: Optional[str] = None,
        problems: Sequence[Dict[str, str]] = (),
        retry_after: Optional[float] = None,
        request_id: Optional[str] = None,
        is_final: bool = False,
    ):
        super().__init__(
            f"status {status}, not a response of the service{detail}" if code is None else f"{code}: {detail}"
        )
        self.status = status
        #: A code of docs/api.md#error-codes; None when the response is not an error envelope of the service.
        self.code = code
        #: What the service says, for people.
        self.detail = detail
        #: Tells errors of one code apart, see docs/api.md#error-reasons; None if the service gives none.
        self.reason = reason
        #: The place in the request that the error is about, such as `events[3].payload` or `query.limit`.
        self.param = param
        #: All mistakes that the service found in the request, each with its `param` and `message`.
        self.problems = list(problems)
        #: Seconds, from `Retry-After`, at most 60.
        self.retry_after = retry_after
        #: Identifies the request in the log of the service; None when another server answered.
        self.request_id = request_id
        #: Whether the service says that this very request can never be accepted.
        self.is_final = is_final

    @property
    def is_temporary(self) -> bool:
        """Whether the same call may succeed later."""
        # Without a code, the response is not from the service, but from a proxy while the service restarts, for example.
        if self.code is None:
            return not 300 <= self.status < 400
        return self.status in (429, 500, 503) or (self.status == 409 and self.retry_after is not None)


class NoResponseError(Exception):
    """The service did not respond, or could not serve the call, in any attempt. Whether it had any effect is unknown."""

    @property
    def request_id(self) -> Optional[str]:
        """Of the last attempt, if the service responded to it."""
        return getattr(self.__cause__, "request_id", None)


class ReportError(Exception):
    """Reports that were lost or are late.

    `reason` is `rejected` (the service refused it), `dropped` (no room, or no time left at the end), `invalid` (JSON
    cannot express it, or it is damaged in the spool) or `delayed` (the service cannot be used; nothing is lost yet).
    """

    def __init__(
        self, reason: str, reports: int, detail: object, run_id: Optional[str] = None, cause: Optional[Exception] = None
    ):
        super().__init__(f"{reports} {'report' if reports == 1 else 'reports'} {reason}: {detail}")
        self.reason = reason
        self.reports = reports
        self.run_id = run_id
        self.__cause__ = cause
