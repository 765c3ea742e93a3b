import json
from typing import Dict, List, NamedTuple, Optional, Tuple

from ._report import EVENT, SCORE, START, TASK, Report

#: The most characters of the events or scores of a call.
BATCH_LENGTH_MAX = 512 * 1024


class Queued(NamedTuple):
    """A report that waits, and its number in order of arrival."""

    report: Report
    mark: int


class Batch(NamedTuple):
    """What is sent of a run in one go: the start, then events, tasks and scores, then the end."""

    run_id: str
    start: Optional[Queued]
    events: List[Queued]
    scores: List[Queued]
    #: By the id of the task.
    tasks: Dict[str, List[Queued]]
    end: Optional[Queued]


class Lane:
    """The reports of one run that wait to be sent."""

    def __init__(self, run_id: str):
        self.run_id = run_id
        self._start: Optional[Queued] = None
        self._end: Optional[Queued] = None
        self._events: List[Queued] = []
        self._scores: List[Queued] = []
        self._tasks: Dict[str, List[Queued]] = {}

    def add(self, report: Report, mark: int) -> None:
        queued = Queued(report, mark)
        if report.kind == EVENT:
            self._events.append(queued)
        elif report.kind == SCORE:
            self._scores.append(queued)
        elif report.kind == TASK:
            self._tasks.setdefault(report.task_id or "", []).append(queued)
        elif report.kind == START:
            self._start = queued
        else:
            self._end = queued

    @property
    def is_empty(self) -> bool:
        return not (self._start or self._events or self._scores or self._tasks or self._end)

    def take(self, events_max: int) -> Batch:
        """Removes what can be sent in one go. The end is only part of it when nothing else is left."""
        events, self._events = _split(self._events, events_max)
        scores, self._scores = _split(self._scores, events_max)
        start, self._start = self._start, None
        tasks, self._tasks = self._tasks, {}
        end = None if self._events or self._scores else self._end
        if end is not None:
            self._end = None
        return Batch(self.run_id, start, events, scores, tasks, end)


class SettledMark:
    """Numbers reports in order, and knows up to which number all are settled."""

    def __init__(self) -> None:
        self.end = 0
        self.through = 0
        self._early: set = set()

    def next(self) -> int:
        self.end += 1
        return self.end

    def settle(self, mark: int) -> None:
        self._early.add(mark)
        while self.through + 1 in self._early:
            self.through += 1
            self._early.remove(self.through)


def merged(reports: List[Queued]) -> str:
    """The reports of a task as one: later ones override the members of earlier ones."""
    if len(reports) == 1:
        return reports[0].report.text
    members: Dict[str, object] = {}
    for queued in reports:
        members.update(json.loads(queued.report.text))
    return json.dumps(members, separators=(",", ":"))


def _split(reports: List[Queued], count_max: int) -> Tuple[List[Queued], List[Queued]]:
    """What can be sent in one call, and the rest."""
    count, length = 0, 0
    for queued in reports[:count_max]:
        length += len(queued.report.text)
        if count > 0 and length > BATCH_LENGTH_MAX:
            break
        count += 1
    return reports[:count], reports[count:]


def halves(reports: List[Queued]) -> Tuple[List[Queued], List[Queued]]:
    middle = len(reports) // 2
    return reports[:middle], reports[middle:]
