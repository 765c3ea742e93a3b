import os
import threading
import time
import weakref
from typing import Callable, Dict, List, NamedTuple, Optional

from ._errors import ReportError
from ._http import Http
from ._lane import BATCH_LENGTH_MAX, Lane, Queued, SettledMark
from ._report import COMPLETE, EVENT, FAIL, SCORE, START, Report
from ._sender import Abandoned, Sender, SenderOptions
from ._spool import Spool

#: Past this multiple of its limit the buffer takes nothing more, even from callers that may not wait.
_OVERFLOW = 2
#: Callers that wait continue when the buffer is this full.
_ROOM_AT = 0.75
#: A spool that cannot be read is read again after this time.
_READ_AGAIN_SECONDS = 1.0
_ENOUGH_LENGTH = BATCH_LENGTH_MAX // 4
#: Stands for a report of the spool that cannot be read.
_DAMAGED = Report("", "", "")


class Stats(NamedTuple):
    """What a client has reported so far. A report is the start or end of a run, an event, a score, or a state of a task."""

    #: Not acknowledged yet.
    queued: int
    #: Characters of those that are in memory.
    queued_bytes: int
    #: Durable at the service.
    acknowledged: int
    #: Refused by the service, or not expressible as JSON.
    rejected: int
    #: Lost because the buffer was full or the time at the end was over.
    dropped: int
    #: Calls that were sent again.
    retries: int
    #: The position of the newest acknowledged event, for `wait_for` of a query; 0 before the first.
    last_seq: int


class ReporterOptions(NamedTuple):
    http: Http
    on_error: Callable[[ReportError], None]
    #: What happens when the buffer is full: "wait" or "drop".
    when_full: str
    #: Of reports in memory.
    buffer_bytes: int
    #: Seconds for which reports wait to be sent together.
    flush_interval: float
    spool: Optional[Spool]
    #: Of reports in the spool.
    spool_bytes: int


class Reporter:
    """Takes reports without waiting for the network; a thread sends them, in order for each run, each exactly once."""

    def __init__(self, options: ReporterOptions):
        self._options = options
        self._on_error = options.on_error
        self._spool = options.spool
        #: Why the service will take no report with this key; None once it was told.
        self.key_problem: Optional[str] = None
        self._begin()
        _reporters.add(self)

    def _begin(self) -> None:
        # Reentrant: a signal handler may flush while this thread reports.
        self._changed = threading.Condition(threading.RLock())
        self._lanes: Dict[str, Lane] = {}
        self._marks = SettledMark()
        self._dropped_runs: set = set()
        self._sender = Sender(
            SenderOptions(self._options.http, self._on_error, self._settle, self._report_outage, self._changed)
        )
        self._thread: Optional[threading.Thread] = None
        #: Reports in memory that the spool could not take.
        self._unstored: set = set()
        self._queued_bytes = 0
        self._dropped = self._invalid = self._flushes = 0
        #: How many reports were dropped since the program was last notified, by reason.
        self._unreported_drops: Dict[str, int] = {}
        self._due_at: Optional[float] = None
        self._has_read_failed = False
        self._is_closed = False
        with self._changed:
            if self._spool is not None:
                self._schedule()

    @property
    def stats(self) -> Stats:
        sender = self._sender
        queued = self._marks.end - self._marks.through + self._unread
        rejected = sender.rejected + self._invalid
        return Stats(
            queued, self._queued_bytes, sender.acknowledged, rejected, self._dropped, sender.retries, sender.last_seq
        )

    def add(self, report: Report) -> None:
        """Takes a report. With `when_full="wait"` it returns when there is room for more."""
        self._tell_key_problem()
        with self._changed:
            if self._is_refused(report):
                return
            if self._spool is None:
                self._enqueue(report)
            else:
                self._store(self._spool, report)
            self._schedule()
            if self._fill >= 1 and self._options.when_full == "wait" and threading.current_thread() is not self._thread:
                self._due_at = 0
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._fill < _ROOM_AT or self._is_closed)

    def _tell_key_problem(self) -> None:
        """At the first report, rather than when the service has refused them for a while. They are kept: a later key may be right."""
        problem, self.key_problem = self.key_problem, None
        if problem is not None:
            self._on_error(ReportError("delayed", 1, problem))

    def _store(self, spool: Spool, report: Report) -> None:
        try:
            spool.append(report)
        except (OSError, ValueError) as error:
            # A full disk: what memory can hold is sent without the file, unless it would overtake what waits there.
            if spool.unread > 0 or not self._has_memory_for(report):
                self._lose_run(report, f"the spool cannot be written: {error}")
                return
            spool.append_nothing()
            self._enqueue(report)
            self._unstored.add(self._marks.end)
            return
        # Reports that follow unread ones in the file must wait for their turn there.
        if spool.unread == 1 and self._has_memory_for(report):
            spool.skip()
            self._enqueue(report)

    def _has_memory_for(self, report: Report) -> bool:
        return self._queued_bytes + len(report.text) <= self._options.buffer_bytes

    def reject(self, error: Exception, run_id: str) -> None:
        """Counts a report that cannot be sent."""
        self._invalid += 1
        self._on_error(ReportError("invalid", 1, str(error), run_id))

    def flush(self, timeout: Optional[float] = None) -> bool:
        """Sends everything at once. Returns whether all that was reported before is acknowledged or refused."""
        timeout = None if timeout is None else min(timeout, threading.TIMEOUT_MAX)
        with self._changed:
            self._report_damage()
            # Unread reports get the next numbers.
            target = self._marks.end + self._unread
            if self._marks.through >= target:
                return True
            self._flushes += 1
            self._changed.notify_all()
            self._start_thread()
            try:
                return self._changed.wait_for(lambda: self._marks.through >= target, timeout)
            finally:
                self._flushes -= 1

    def flush_at_exit(self, timeout: float) -> None:
        """The same at the end of the program, when what is left after that time is lost, unless it is in the spool."""
        is_done = self.flush(timeout)
        reports = self._unsafe
        if not is_done and reports > 0:
            self._report_drop(reports, "the program ended before the service took them")

    def close(self, timeout: float) -> bool:
        """Sends what is left, and then takes nothing more. What cannot be sent in time stays in the spool or is lost."""
        with self._changed:
            if self._is_closed:
                return self.stats.queued == 0
            self._is_closed = True
        is_done = self.flush(timeout)
        self._sender.abandon()
        if self._thread is not None:
            self._thread.join(timeout=1)
        with self._changed:
            if self._unsafe > 0:
                self._lose(self._unsafe, "the service did not take them in time")
            self._report_drops()
            # An answer may still be on its way.
            spool, self._spool = self._spool, None
            if spool is not None:
                spool.close()
        return is_done

    @property
    def _unsafe(self) -> int:
        """Reports that are lost when the process ends."""
        return self._marks.end - self._marks.through if self._spool is None else len(self._unstored)

    def after_fork(self) -> None:
        """In a forked process: the thread, what it has yet to send, and the spool are its parent's."""
        if self._spool is not None:
            self._spool.leave()
        self._spool = None
        self._options.http.forget_connections()
        self._begin()

    @property
    def _unread(self) -> int:
        return 0 if self._spool is None else self._spool.unread

    @property
    def _fill(self) -> float:
        return (self._queued_bytes if self._spool is None else self._spool.bytes) / self._capacity

    @property
    def _capacity(self) -> int:
        return self._options.buffer_bytes if self._spool is None else self._options.spool_bytes

    def _is_refused(self, report: Report) -> bool:
        """Starts of runs, events and scores need room. States of tasks and ends of runs are few, and are always taken."""
        # It would take the room of all others.
        is_too_large = len(report.text) > self._capacity
        is_over = self._fill >= (1 if self._options.when_full == "drop" else _OVERFLOW)
        has_no_room = report.kind in (START, EVENT, SCORE) and (is_over or is_too_large)
        if not (self._is_closed or report.run_id in self._dropped_runs or has_no_room):
            return False
        detail = "one is larger than the whole buffer" if is_too_large else "the buffer is full"
        self._lose_run(report, "the client is closed" if self._is_closed else detail)
        return True

    def _lose_run(self, report: Report, detail: str) -> None:
        """Drops a report, and what follows if it is the start of a run."""
        if report.kind == START:
            self._dropped_runs.add(report.run_id)
        elif report.kind in (COMPLETE, FAIL):
            self._dropped_runs.discard(report.run_id)
        self._lose(1, detail)

    def _lose(self, reports: int, detail: str) -> None:
        self._dropped += reports
        self._unreported_drops[detail] = self._unreported_drops.get(detail, 0) + reports
        if self._is_closed:
            self._report_drops()
        else:
            self._schedule()

    def _report_drops(self) -> None:
        drops, self._unreported_drops = self._unreported_drops, {}
        for detail, reports in drops.items():
            self._report_drop(reports, detail)

    def _report_drop(self, reports: int, detail: str) -> None:
        cause = self._sender.last_failure
        because = detail if cause is None else f"{detail}; the last failure: {cause}"
        self._on_error(ReportError("dropped", reports, because, cause=cause))

    def _report_outage(self, cause: Exception) -> None:
        self._on_error(ReportError("delayed", self.stats.queued, cause, cause=cause))

    def _report_damage(self) -> None:
        damage = None if self._spool is None else self._spool.take_damage()
        if damage is not None:
            self._invalid += damage[0]
            self._on_error(ReportError("invalid", *damage))

    def _enqueue(self, report: Report) -> None:
        lane = self._lanes.get(report.run_id)
        if lane is None:
            lane = self._lanes[report.run_id] = Lane(report.run_id)
        lane.add(report, self._marks.next())
        self._queued_bytes += len(report.text)

    def _schedule(self) -> None:
        if self._due_at is None:
            self._due_at = time.monotonic() + self._options.flush_interval
            self._changed.notify_all()
        elif self._queued_bytes >= _ENOUGH_LENGTH:
            self._due_at = 0
            self._changed.notify_all()
        self._start_thread()

    def _start_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="agent-run-service", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        try:
            while self._wait_until_due():
                self._report_drops()
                for lane in self._lanes_to_send():
                    self._send(lane)
        except Abandoned:
            pass
        finally:
            self._options.http.close()

    def _lanes_to_send(self) -> List[Lane]:
        with self._changed:
            try:
                self._read_spool()
                self._has_read_failed = False
            except OSError as error:
                if not self._has_read_failed:
                    self._report_outage(error)
                self._has_read_failed = True
                self._changed.wait(_READ_AGAIN_SECONDS)
            self._report_damage()
            return list(self._lanes.values())

    def _wait_until_due(self) -> bool:
        with self._changed:
            while not self._sender.is_abandoned:
                has_work = bool(self._lanes) or self._unread > 0 or bool(self._unreported_drops)
                now = time.monotonic()
                if has_work and (self._flushes > 0 or (self._due_at is not None and self._due_at <= now)):
                    self._due_at = None
                    return True
                self._changed.wait(None if self._due_at is None or not has_work else self._due_at - now)
            return False

    def _send(self, lane: Lane) -> None:
        with self._changed:
            batch = lane.take(self._sender.events_max)
        self._sender.send(batch)
        with self._changed:
            if lane.is_empty:
                self._lanes.pop(lane.run_id, None)
            elif self._due_at is None:
                self._due_at = 0

    def _read_spool(self) -> None:
        """Continues with the reports that are only in the file, once there is room for them in memory."""
        while self._spool is not None and self._spool.unread > 0 and self._queued_bytes < self._options.buffer_bytes / 2:
            damaged: List[Queued] = []
            for report in self._spool.read(max(1, self._options.buffer_bytes // 4)):
                if report is None:
                    damaged.append(Queued(_DAMAGED, self._marks.next()))
                else:
                    self._enqueue(report)
            if damaged:
                self._settle(damaged)

    def _settle(self, reports: "list[Queued]") -> None:
        """Called with reports that were acknowledged or refused."""
        with self._changed:
            before = self._marks.through
            for report, mark in reports:
                self._queued_bytes -= len(report.text)
                self._marks.settle(mark)
                self._unstored.discard(mark)
            if self._spool is not None and self._marks.through > before:
                self._spool.acknowledge(self._marks.through - before)
            if self._unread > 0 and self._due_at is None:
                self._due_at = 0
            self._changed.notify_all()


_reporters: "weakref.WeakSet[Reporter]" = weakref.WeakSet()


def _after_fork() -> None:
    # Locks that other threads of the parent held are held for ever here.
    for reporter in list(_reporters):
        reporter.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
