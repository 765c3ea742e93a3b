import http.client
import json
import re
import threading
import time
from typing import Any, Callable, List, Optional

from ._errors import ReportError, ServiceError
from ._http import Http, backoff, is_temporary, retry_after_of
from ._lane import Batch, Queued, halves, merged

#: The most events that the service takes in one call, unless it is configured otherwise.
_EVENTS_MAX = 5_000
#: An outage is reported when it has lasted so many seconds.
_OUTAGE_REPORTED_SECONDS = 10.0
_PATHS = {"s": "/api/ingest/v1/run/start", "c": "/api/ingest/v1/run/complete", "f": "/api/ingest/v1/run/fail"}


class Abandoned(Exception):
    """The client is closed before the service answered."""


class Sender:
    """Sends batches of reports, each until the service has acknowledged or refused it."""

    def __init__(
        self,
        http: Http,
        on_error: Callable[[ReportError], None],
        on_settled: Callable[[List[Queued]], None],
        changed: threading.Condition,
        waits_for_key: bool,
    ):
        self.acknowledged = self.rejected = self.retries = self.last_seq = 0
        #: Falls when the service says that it takes fewer.
        self.events_max = _EVENTS_MAX
        self.is_abandoned = False
        self._http = http
        self._on_error = on_error
        self._on_settled = on_settled
        self._changed = changed
        #: With a spool, an invalid key is an outage: the next client may have the right one.
        self._waits_for_key = waits_for_key
        self._outage_since: Optional[float] = None

    def abandon(self) -> None:
        with self._changed:
            self.is_abandoned = True
            self._changed.notify_all()

    def send(self, batch: Batch) -> None:
        """Sends a batch. Raises Abandoned."""
        if batch.start is not None:
            refusal = self._single(batch.run_id, batch.start)
            if refusal is not None:
                rest = batch.events + [report for task in batch.tasks for report in task]
                rest += [] if batch.end is None else [batch.end]
                if rest:
                    self._reject(batch.run_id, rest, refusal)
                return
        if batch.events:
            self._events(batch.run_id, batch.events)
        for task in batch.tasks:
            self._task(batch.run_id, task)
        if batch.end is not None:
            self._single(batch.run_id, batch.end)

    def _single(self, run_id: str, report: Queued) -> Optional[ServiceError]:
        return self._one(run_id, [report], _PATHS[report.kind], report.text)

    def _task(self, run_id: str, reports: List[Queued]) -> None:
        self._one(run_id, reports, "/api/ingest/v1/tasks", f'{{"run_id":"{run_id}","task":{merged(reports)}}}')

    def _one(self, run_id: str, reports: List[Queued], path: str, body: str) -> Optional[ServiceError]:
        """Returns why the service refused it, if it did."""
        try:
            self._deliver(path, body)
        except ServiceError as error:
            self._reject(run_id, reports, error)
            return error
        self._acknowledge(reports)
        return None

    def _events(self, run_id: str, events: List[Queued]) -> None:
        body = f'{{"run_id":"{run_id}","events":[{",".join(event.text for event in events)}]}}'
        try:
            accepted = self._deliver("/api/ingest/v1/events?partial=true", body)
        except ServiceError as error:
            # So that an event that the service does not take does not take others with it.
            if len(events) > 1 and (error.status == 413 or error.reason.startswith("events")):
                limit = re.search(r"at most (\d+) events", error.reason)
                if limit is not None:
                    self.events_max = min(self.events_max, int(limit[1]))
                for half in halves(events):
                    self._events(run_id, half)
            else:
                self._reject(run_id, events, error)
            return
        self.last_seq = max(self.last_seq, accepted["last_seq"] or 0)
        rejected = accepted.get("rejected", [])
        self.acknowledged -= len(rejected)
        self._acknowledge(events)
        if rejected:
            self.rejected += len(rejected)
            detail = "; ".join(each["message"] for each in rejected[:3])
            self._on_error(ReportError("rejected", len(rejected), detail, run_id))

    def _acknowledge(self, reports: List[Queued]) -> None:
        self.acknowledged += len(reports)
        self._on_settled(reports)

    def _reject(self, run_id: str, reports: List[Queued], error: ServiceError) -> None:
        self.rejected += len(reports)
        problem = ReportError("rejected", len(reports), str(error), run_id)
        problem.__cause__ = error
        self._on_error(problem)
        self._on_settled(reports)

    def _deliver(self, path: str, body: str) -> Any:
        """Sends a call until the service answers, however long that takes. Raises ServiceError, Abandoned."""
        encoded = body.encode()
        failures = 0
        while not self.is_abandoned:
            try:
                data = self._http.attempt("POST", path, encoded)
                self._outage_since = None
                return data
            except (OSError, http.client.HTTPException, json.JSONDecodeError, KeyError, TypeError, ServiceError) as error:
                is_refused_key = isinstance(error, ServiceError) and error.status == 401
                if not (is_temporary(error) or (is_refused_key and self._waits_for_key)):
                    raise
                failures += 1
                self.retries += 1
                self._note_outage(error)
                delay = max(retry_after_of(error), backoff(failures))
            with self._changed:
                self._changed.wait_for(lambda: self.is_abandoned, delay)
        raise Abandoned

    def _note_outage(self, error: Exception) -> None:
        now = time.monotonic()
        if self._outage_since is None:
            self._outage_since = now
        elif now - self._outage_since >= _OUTAGE_REPORTED_SECONDS:
            self._outage_since = float("inf")
            self._on_error(ReportError("delayed", 1, str(error)))
