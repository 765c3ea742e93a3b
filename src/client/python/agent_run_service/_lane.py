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
        #: Starts and ends that were reported again before the first one was sent.
        self._later: List[Queued] = []

    def add(self, report: Report, mark: int) -> None:
        queued = Queued(report, mark)
        if report.kind == EVENT:
            self._events.append(queued)
        elif report.kind == SCORE:
            self._scores.append(queued)
        elif report.kind == TASK:
            self._tasks.setdefault(report.task_id or "", []).append(queued)
        elif (self._start if report.kind == START else self._end) is not None:
            self._later.append(queued)
        elif report.kind == START:
            self._start = queued
        else:
            self._end = queued

    @property
    def is_empty(self) -> bool:
        return not (self._start or self._events or self._scores or self._tasks or self._end)

    @property
    def parent_run_id(self) -> Optional[str]:
        """The run that started this one, while the start of this one waits here."""
        return None if self._start is None else self._start.report.parent_run_id

    @property
    def has_end(self) -> bool:
        return self._end is not None

    def is_whole(self, mark: int, of_open_runs: bool) -> bool:
        """Whether all of the run is here, and it was over by a report or, with `of_open_runs`, began by then."""
        last = self._start if of_open_runs else self._end
        return self._start is not None and last is not None and last.mark <= mark

    def droppable(self, of_open_runs: bool) -> List[Tuple[int, int]]:
        """What may be dropped: the number of each report, and how much room that makes."""
        if of_open_runs and self._start is not None:
            return [(self._start.mark, _length(self._all))]
        singles = self._events + self._scores + (self._task_states if of_open_runs else [])
        found = [(queued.mark, len(queued.report.text)) for queued in singles]
        if self._start is not None and self._end is not None:
            found.append((self._end.mark, _length([self._start, *self._later, *self._task_states, self._end])))
        return found

    def drop_through(self, mark: int, of_open_runs: bool) -> List[Queued]:
        """Removes events and scores that are not newer than a report, and with `of_open_runs` tasks, too."""
        events, self._events = _older(self._events, mark)
        scores, self._scores = _older(self._scores, mark)
        dropped = events + scores
        for task_id, states in list(self._tasks.items()) if of_open_runs else []:
            if states[-1].mark <= mark:
                dropped += self._tasks.pop(task_id)
        return dropped

    def drop_all(self) -> List[Queued]:
        """Removes everything."""
        dropped = self._all
        self._start = self._end = None
        self._events, self._scores, self._tasks, self._later = [], [], {}, []
        return dropped

    @property
    def _task_states(self) -> List[Queued]:
        return [queued for states in self._tasks.values() for queued in states]

    @property
    def _all(self) -> List[Queued]:
        ends = [queued for queued in (self._start, self._end) if queued is not None]
        return ends + self._later + self._events + self._scores + self._task_states

    def take(self, events_max: int) -> Batch:
        """Removes what can be sent in one go. The end is only part of it when nothing else is left."""
        events, self._events = _split(self._events, events_max)
        scores, self._scores = _split(self._scores, events_max)
        start, self._start = self._start, None
        tasks, self._tasks = self._tasks, {}
        end = None if self._events or self._scores else self._end
        if end is not None:
            self._end = None
        later, self._later = self._later, []
        for queued in later:
            self.add(queued.report, queued.mark)
        return Batch(self.run_id, start, events, scores, tasks, end)


class SettledMark:
    """Numbers reports in order, and knows up to which number all are settled."""

    def __init__(self) -> None:
        self.end = 0
        self.through = 0
        #: How many are not settled.
        self.open = 0
        #: Ranges that are settled although a number before them is not: the last of each by its first, and the reverse. There
        #: are no more of them than open numbers, however long the first of these takes.
        self._last: Dict[int, int] = {}
        self._first: Dict[int, int] = {}

    def next(self) -> int:
        self.end += 1
        self.open += 1
        return self.end

    def settle(self, mark: int) -> None:
        self.open -= 1
        first = self._first.pop(mark - 1, mark)
        last = self._last.pop(mark + 1, mark)
        if first == self.through + 1:
            self.through = last
            self._last.pop(first, None)
            self._first.pop(last, None)
        else:
            self._last[first], self._first[last] = last, first


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


def _older(reports: List[Queued], mark: int) -> Tuple[List[Queued], List[Queued]]:
    """Those that are not newer than a report, and the rest."""
    return [each for each in reports if each.mark <= mark], [each for each in reports if each.mark > mark]


def _length(reports: List[Queued]) -> int:
    return sum(len(queued.report.text) for queued in reports)


def halves(reports: List[Queued]) -> Tuple[List[Queued], List[Queued]]:
    middle = len(reports) // 2
    return reports[:middle], reports[middle:]
