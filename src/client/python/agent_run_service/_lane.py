import json
from typing import Dict, List, NamedTuple, Optional, Tuple

#: The most characters of the events of a call.
BATCH_LENGTH_MAX = 512 * 1024
_UUID_LENGTH = 36
_TASK_ID_AT = len('{"id":"')


class Queued(NamedTuple):
    """A report that waits: its JSON, and its number in order of arrival."""

    kind: str
    text: str
    mark: int


class Batch(NamedTuple):
    """What is sent of a run in one go: the start, then events and tasks, then the end."""

    run_id: str
    start: Optional[Queued]
    events: List[Queued]
    tasks: List[List[Queued]]
    end: Optional[Queued]


class Lane:
    """The reports of one run that wait to be sent."""

    def __init__(self, run_id: str):
        self.run_id = run_id
        self._start: Optional[Queued] = None
        self._end: Optional[Queued] = None
        self._events: List[Queued] = []
        self._tasks: Dict[str, List[Queued]] = {}

    def add(self, report: Queued) -> None:
        if report.kind == "e":
            self._events.append(report)
        elif report.kind == "t":
            self._tasks.setdefault(task_id_of(report.text), []).append(report)
        elif report.kind == "s":
            self._start = report
        else:
            self._end = report

    @property
    def is_empty(self) -> bool:
        return not (self._start or self._events or self._tasks or self._end)

    def take(self, events_max: int) -> Batch:
        """Removes what can be sent in one go. The end is only part of it when nothing else is left."""
        count, length = 0, 0
        for event in self._events[:events_max]:
            length += len(event.text)
            if count > 0 and length > BATCH_LENGTH_MAX:
                break
            count += 1
        events, self._events = self._events[:count], self._events[count:]
        start, self._start = self._start, None
        tasks, self._tasks = list(self._tasks.values()), {}
        end = None if self._events else self._end
        if end is not None:
            self._end = None
        return Batch(self.run_id, start, events, tasks, end)


class Watermark:
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


def task_id_of(text: str) -> str:
    """The id of a task is the first member of its report."""
    return text[_TASK_ID_AT : _TASK_ID_AT + _UUID_LENGTH]


def merged(reports: List[Queued]) -> str:
    """The reports of a task as one: later ones override the members of earlier ones."""
    if len(reports) == 1:
        return reports[0].text
    members: Dict[str, object] = {}
    for report in reports:
        members.update(json.loads(report.text))
    return json.dumps(members, separators=(",", ":"))


def halves(events: List[Queued]) -> Tuple[List[Queued], List[Queued]]:
    middle = len(events) // 2
    return events[:middle], events[middle:]
