from typing import NamedTuple, Optional

#: Kinds of reports. Those of a run's start and end name the operation that takes them.
START = "start"
EVENT = "event"
SCORE = "score"
TASK = "task"
COMPLETE = "complete"
FAIL = "fail"


class Report(NamedTuple):
    """What is sent about a run."""

    kind: str
    run_id: str
    #: JSON, in one line.
    text: str
    #: Of a task: its id. Reports of the same task are sent as one.
    task_id: Optional[str] = None
    #: Of the start of a run: the run that started it.
    parent_run_id: Optional[str] = None
