import os
import sys
import threading
import time
import weakref
from typing import Callable, Dict, List, NamedTuple, Optional

from ._errors import ReportError
from ._http import Http
from ._lane import BATCH_LENGTH_MAX, Lane, Queued, SettledMark
from ._report import COMPLETE, EVENT, FAIL, SCORE, START, Report
from ._room import drop_oldest
from ._sender import Abandoned, Sender, SenderOptions
from ._spool import Spool

#: Past this multiple of its limit the buffer takes nothing more, even from callers that may not wait.
_OVERFLOW = 2
#: Callers that wait continue when the buffer is this full.
_ROOM_AT = 0.75
#: As many reports are dropped at a time that the buffer is this full.
_DROPPED_TO = 0.875
_RUN_DROPPED = "the start of the run was dropped"
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
    #: Seconds for which callers wait for room at most.
    wait_timeout: float
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
            SenderOptions(self._options.http, self._on_error, self._settle, self._tell_outage, self._changed)
        )
        self._thread: Optional[threading.Thread] = None
        #: Reports in memory that the spool could not take.
        self._unstored: set = set()
        self._queued_bytes = 0
        self._dropped = self._invalid = self._flushes = 0
        #: How many reports were dropped since the program was last notified, by reason.
        self._unreported_drops: Dict[str, int] = {}
        #: Reasons that the program was notified of and that go on.
        self._lasting_drops: set = set()
        #: Since reports were dropped or callers waited in vain, until there is room again. Nobody waits meanwhile.
        self._is_overfull = False
        self._due_at: Optional[float] = None
        self._has_read_failed = False
        self._is_closed = False
        #: Told once no lock is held: the program's handler may wait for another thread, which waits for the lock.
        self._untold: List[ReportError] = []
        with self._changed:
            if self._spool is not None:
                self._schedule()

    @property
    def stats(self) -> Stats:
        sender = self._sender
        queued = self._marks.open + self._unread
        rejected = sender.rejected + self._invalid
        return Stats(
            queued, self._queued_bytes, sender.acknowledged, rejected, self._dropped, sender.retries, sender.last_seq
        )

    def add(self, report: Report) -> None:
        """Takes a report. With `when_full="wait"` it returns when there is room for more, or the time for it is over."""
        self._tell_key_problem()
        with self._changed:
            if not self._is_refused(report):
                if self._spool is None:
                    self._keep(report)
                else:
                    self._store(self._spool, report)
                self._schedule()
                if self._fill >= 1 and self._may_wait:
                    self._wait_for_room()
        # The thread may be busy with calls that fail.
        if self._is_overfull:
            self._report_drops(goes_on=True)
        self._tell()

    def _tell(self) -> None:
        """Tells the program what went wrong. Not under the lock."""
        while self._untold:
            try:
                error = self._untold.pop(0)
            except IndexError:  # Another thread was faster.
                return
            self._on_error(error)

    def _tell_outage(self, cause: Exception) -> None:
        self._report_outage(cause)
        self._tell()

    @property
    def _may_wait(self) -> bool:
        if self._options.when_full == "drop" or self._is_overfull or _is_in_event_loop():
            return False
        return threading.current_thread() is not self._thread

    def _wait_for_room(self) -> None:
        self._due_at = 0
        self._changed.notify_all()
        timeout = min(self._options.wait_timeout, threading.TIMEOUT_MAX)
        is_over = lambda: self._fill < _ROOM_AT or self._is_closed or self._is_overfull  # noqa: E731
        if not self._changed.wait_for(is_over, timeout):
            self._is_overfull = True
            self._changed.notify_all()

    def _keep(self, report: Report) -> None:
        """Keeps a report in memory."""
        self._enqueue(report)
        # One that exceeds the buffer is sent all the same if it is the end of a run or task; it must not cost all others.
        if self._fill <= self._fill_max or len(report.text) > self._capacity:
            return
        for lane, reports, is_run_dropped in drop_oldest(
            list(self._lanes.values()), int(self._queued_bytes - self._capacity * _DROPPED_TO)
        ):
            if is_run_dropped:
                self._dropped_runs.add(lane.run_id)
            if reports:
                self._lose(len(reports), "the buffer is full: the oldest make room")
            self._release(reports)
            if lane.is_empty:
                self._lanes.pop(lane.run_id, None)
        self._is_overfull = True

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
        with self._changed:
            self._invalid += 1
        self._on_error(ReportError("invalid", 1, str(error), run_id))

    def flush(self, timeout: Optional[float] = None) -> bool:
        """Sends everything at once. Returns whether all that was reported before is acknowledged or refused."""
        timeout = None if timeout is None else min(timeout, threading.TIMEOUT_MAX)
        with self._changed:
            self._report_damage()
        self._tell()
        with self._changed:
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
        self._report_drops()
        reports = self._unsafe
        if not is_done and reports > 0:
            self._report_drop(reports, "the program ended before the service took them")
        self._tell()

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
        self._tell()
        return is_done

    @property
    def _unsafe(self) -> int:
        """Reports that are lost when the process ends."""
        return self._marks.open if self._spool is None else len(self._unstored)

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

    @property
    def _fill_max(self) -> float:
        """How full the buffer may be: callers that do not wait can fill it more."""
        return 1 if self._options.when_full == "drop" or self._is_overfull else _OVERFLOW

    def _is_refused(self, report: Report) -> bool:
        detail = self._refusal_of(report)
        if detail is None:
            return False
        self._lose_run(report, detail)
        return True

    def _refusal_of(self, report: Report) -> Optional[str]:
        """Starts of runs, events and scores need room. States of tasks and ends of runs are few, and are always taken."""
        if self._is_closed:
            return "the client is closed"
        if report.run_id in self._dropped_runs or report.parent_run_id in self._dropped_runs:
            return _RUN_DROPPED
        if report.kind not in (START, EVENT, SCORE):
            return None
        # It would take the room of all others.
        if len(report.text) > self._capacity:
            return "one is larger than the whole buffer"
        # The file cannot do without its oldest reports. Memory can, see `_keep`.
        if self._spool is None or self._fill < self._fill_max:
            return None
        self._is_overfull = True
        return "the spool is full"

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

    def _report_drops(self, goes_on: bool = False) -> None:
        """Reports all drops since the last call. If more will follow, each reason once, and the rest when it is over."""
        with self._changed:
            told = self._lasting_drops if goes_on else set()
            drops = {detail: reports for detail, reports in self._unreported_drops.items() if detail not in told}
            for detail in drops:
                del self._unreported_drops[detail]
            self._lasting_drops = {*told, *drops} if goes_on else set()
        for detail, reports in drops.items():
            self._report_drop(reports, detail)

    def _report_drop(self, reports: int, detail: str) -> None:
        cause = self._sender.last_failure
        because = detail if cause is None else f"{detail}; the last failure: {cause}"
        self._untold.append(ReportError("dropped", reports, because, cause=cause))

    def _report_outage(self, cause: Exception) -> None:
        self._untold.append(ReportError("delayed", self.stats.queued, cause, cause=cause))

    def _report_damage(self) -> None:
        damage = None if self._spool is None else self._spool.take_damage()
        if damage is not None:
            self._invalid += damage[0]
            self._untold.append(ReportError("invalid", *damage))

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
                self._report_drops(goes_on=self._is_overfull)
                self._tell()
                lanes = self._lanes_to_send()
                self._tell()
                for lane in lanes:
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
            if not lane.is_empty:
                if self._due_at is None:
                    self._due_at = 0
            elif self._lanes.get(lane.run_id) is lane:
                del self._lanes[lane.run_id]

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
            self._release(reports)
            if self._spool is not None and self._marks.through > before:
                self._spool.acknowledge(self._marks.through - before)
            if self._is_overfull and self._fill < _ROOM_AT:
                self._is_overfull = False
                self._due_at = 0
            if self._unread > 0 and self._due_at is None:
                self._due_at = 0
            self._changed.notify_all()


    def _release(self, reports: "list[Queued]") -> None:
        """These reports wait no longer."""
        for report, mark in reports:
            self._queued_bytes -= len(report.text)
            self._marks.settle(mark)
            self._unstored.discard(mark)


def _is_in_event_loop() -> bool:
    """Whether a wait would stop all of a program's coroutines."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


_reporters: "weakref.WeakSet[Reporter]" = weakref.WeakSet()


def _after_fork() -> None:
    # Locks that other threads of the parent held are held for ever here.
    for reporter in list(_reporters):
        reporter.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
