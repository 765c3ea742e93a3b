import threading
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from ._errors import ReportError, ServiceError
from ._http import Http, backoff, not_ours, retry_after_of
from ._ids import is_uuid
from ._lane import Batch, Queued, halves, merged

#: The most events or scores that the service takes in one call, unless it is configured otherwise.
_EVENTS_MAX = 5_000
#: Before a body of this size is sent, the limit of the service is read, which is hardly lower.
_LARGE_BYTES = 2**20
#: An outage is reported when it has lasted so many seconds.
_OUTAGE_REPORTED_SECONDS = 10.0


class Abandoned(Exception):
    """The client is closed before the service answered."""


class SenderOptions(NamedTuple):
    http: Http
    on_error: Callable[[ReportError], None]
    #: Called with reports that were acknowledged or refused.
    on_settled: Callable[[List[Queued]], None]
    on_outage: Callable[[Exception], None]
    #: Interrupts waiting.
    changed: threading.Condition


class _Door(NamedTuple):
    """A call that takes a list of reports."""

    #: The name of the list, and of the call.
    member: str
    #: What the JSON has before the list.
    head: str


class Sender:
    """Sends batches of reports, each until the service has acknowledged or refused it."""

    def __init__(self, options: SenderOptions):
        self.acknowledged = self.rejected = self.retries = self.last_seq = 0
        #: Falls to the limit of the service once that is known.
        self.events_max = _EVENTS_MAX
        self.is_abandoned = False
        self._http, self._on_error, self._on_settled, self._on_outage, self._changed = options
        self._outage_since: Optional[float] = None
        #: Why reports wait; None while calls succeed.
        self.last_failure: Optional[Exception] = None
        #: The largest body that the service takes; None until it matters.
        self._body_bytes_max: Optional[int] = None

    def abandon(self) -> None:
        with self._changed:
            self.is_abandoned = True
            self._changed.notify_all()

    def send(self, batch: Batch) -> None:
        """Sends a batch. Raises Abandoned."""
        if batch.start is not None:
            refusal = self._single(batch.run_id, batch.start)
            if refusal is not None:
                rest = batch.events + batch.scores + [report for task in batch.tasks.values() for report in task]
                rest += [] if batch.end is None else [batch.end]
                if rest:
                    self._reject(batch.run_id, rest, refusal)
                return
        if batch.events:
            self._batch(batch.run_id, batch.events, _Door("events", f'"run_id":"{batch.run_id}",'))
        for task_id, reports in batch.tasks.items():
            self._task(batch.run_id, task_id, reports)
        if batch.scores:
            self._batch(batch.run_id, batch.scores, _Door("scores", ""))
        if batch.end is not None:
            self._single(batch.run_id, batch.end)

    def _single(self, run_id: str, queued: Queued) -> Optional[ServiceError]:
        report = queued.report
        return self._one(run_id, [queued], f"/api/ingest/v1/run/{report.kind}", report.text, ("run_id", run_id))

    def _task(self, run_id: str, task_id: str, reports: List[Queued]) -> None:
        body = f'{{"run_id":"{run_id}","task":{merged(reports)}}}'
        self._one(run_id, reports, "/api/ingest/v1/tasks", body, ("task_id", task_id))

    def _one(
        self, run_id: str, reports: List[Queued], path: str, body: str, named: Tuple[str, str]
    ) -> Optional[ServiceError]:
        """Returns why the service refused it, if it did. Its answer names the run or task that was reported."""
        member, named_id = named
        try:
            self._deliver(path, body, lambda data: str(data.get(member)).lower() == named_id.lower())
        except ServiceError as error:
            self._reject(run_id, reports, error)
            return error
        self._acknowledge(reports)
        return None

    def _batch(self, run_id: str, batch: List[Queued], door: _Door) -> None:
        """Sends events or scores."""
        body = f'{{{door.head}"{door.member}":[{",".join(queued.report.text for queued in batch)}]}}'
        try:
            is_answer = lambda data: _is_answer_for_batch(data, len(batch))  # noqa: E731
            accepted = self._deliver(f"/api/ingest/v1/{door.member}?partial=true", body, is_answer, len(batch) > 1)
        except ServiceError as error:
            # Splits the batch, so that one refused report does not fail the others.
            if len(batch) > 1 and _is_of_some(error, run_id):
                self._read_limits()
                for half in halves(batch):
                    self._batch(run_id, half, door)
            else:
                self._reject(run_id, batch, error)
            return
        self.last_seq = max(self.last_seq, accepted.get("last_seq") or 0)
        rejected = accepted.get("rejected") or []
        self.acknowledged -= len(rejected)
        self._acknowledge(batch)
        if rejected:
            self.rejected += len(rejected)
            detail = "; ".join(str(each.get("message")) for each in rejected[:3])
            self._on_error(ReportError("rejected", len(rejected), detail, run_id))

    def _acknowledge(self, reports: List[Queued]) -> None:
        self.acknowledged += len(reports)
        self._on_settled(reports)

    def _reject(self, run_id: str, reports: List[Queued], error: ServiceError) -> None:
        self.rejected += len(reports)
        self._on_error(ReportError("rejected", len(reports), error, run_id, error))
        self._on_settled(reports)

    def _deliver(
        self, path: str, body: str, is_answer: Callable[[Dict[str, Any]], bool], can_be_split: bool = False
    ) -> Dict[str, Any]:
        """Sends a call until the service answers it, however long that takes.

        `is_answer` tells whether `data` can be the service's answer to this call. Raises ServiceError when the service can
        never accept it, or what is too large for a proxy may pass in parts; Abandoned.
        """
        encoded = body.encode()
        failures = 0
        while not self.is_abandoned:
            try:
                if len(encoded) >= _LARGE_BYTES:
                    self._check_length(encoded)
                data = self._http.attempt("POST", path, encoded)
                if not isinstance(data, dict) or not is_answer(data):
                    raise not_ours(200)
                self._outage_since = self.last_failure = None
                return data
            except Exception as error:  # Whatever it is, it must not end the thread.
                # Anything else may come from a wrong address, a proxy or a wrong key, and says nothing about the reports.
                if isinstance(error, ServiceError) and (error.is_final or (can_be_split and error.status == 413)):
                    raise
                failures += 1
                self.retries += 1
                self.last_failure = error
                self._note_outage(error)
                delay = max(retry_after_of(error), backoff(failures))
            with self._changed:
                self._changed.wait_for(lambda: self.is_abandoned, delay)
        raise Abandoned

    def _check_length(self, body: bytes) -> None:
        """Raises ServiceError for a body that is too large.

        The service may close the connection before its answer about it could be read, so such a body is not sent.
        """
        self._read_limits()
        if self._body_bytes_max is not None and len(body) > self._body_bytes_max:
            detail = f"the service takes at most {self._body_bytes_max} bytes in one call"
            raise ServiceError(413, code="PAYLOAD_TOO_LARGE", detail=detail, is_final=True)

    def _read_limits(self) -> None:
        """Reads the limits of the service, unless they are known. Without them, what it refuses is sent in parts."""
        if self._body_bytes_max is not None:
            return
        try:
            limits = self._http.attempt("GET", "/api/v1/limits")
            events_max, self._body_bytes_max = int(limits["events_per_call"]), int(limits["body_bytes"])
        except Exception:
            return
        self.events_max = max(1, min(self.events_max, events_max))

    def _note_outage(self, error: Exception) -> None:
        now = time.monotonic()
        if self._outage_since is None:
            self._outage_since = now
        elif now - self._outage_since >= _OUTAGE_REPORTED_SECONDS:
            self._outage_since = float("inf")
            self._on_outage(error)


def _is_answer_for_batch(data: Dict[str, Any], count: int) -> bool:
    """Whether an answer is about that many events or scores, and has the members that are read."""
    last_seq, rejected = data.get("last_seq"), data.get("rejected") or []
    if last_seq is not None and not isinstance(last_seq, int):
        return False
    if not isinstance(rejected, list) or not all(isinstance(each, dict) for each in rejected):
        return False
    return bool(data["accepted"] + data["duplicates"] + len(rejected) == count)


def _is_of_some(error: ServiceError, run_id: str) -> bool:
    """Whether a refusal may be about only some of a batch: about their content, and not about their run."""
    return error.status == 413 or (error.code == "VALIDATION_ERROR" and is_uuid(run_id))
