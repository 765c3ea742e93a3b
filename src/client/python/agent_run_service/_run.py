from contextvars import ContextVar, Token
from datetime import datetime, timezone
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Union

from ._ids import uuidv7
from ._json import describe_error, encode, to_object, to_valid_object
from ._report import COMPLETE, EVENT, FAIL, SCORE, START, TASK, Report
from ._reporter import Reporter


class Reporting(NamedTuple):
    """What runs and tasks need of their client."""

    reporter: Reporter
    #: Ids of events and scores.
    new_event_id: Callable[[], str]


#: The task whose `with` block is executing.
_current_task: "ContextVar[Optional[Task]]" = ContextVar("agent_run_service_task", default=None)


class Run:
    """A run that this process reports. As a context manager it completes with `output`, or fails with the exception."""

    def __init__(self, reporting: Reporting, run_id: str):
        self.run_id = run_id
        #: What the run completes with at the end of its `with` block.
        self.output: Any = None
        self._reporting = reporting
        self._has_ended = False

    def event(
        self,
        type: str,
        payload: Any = None,
        *,
        level: str = "info",
        occurred_at: Optional[datetime] = None,
        id: Optional[str] = None,
        task_id: Optional[str] = None,
    ) -> None:
        """Reports an event. With `when_full="wait"` it returns when there is room for more, or after `wait_timeout`.

        It is part of the task `task_id`. Default: the task of this run whose `with` block is executing.
        """
        event = {
            "id": self._reporting.new_event_id() if id is None else id,
            "type": type,
            "level": level,
            "occurred_at": _now() if occurred_at is None else _timestamp(occurred_at),
            "payload": to_object(payload),
        }
        task_id = task_id or self._current_task_id()
        if task_id is not None:
            event["task_id"] = task_id
        _report(self._reporting, EVENT, self.run_id, event)

    def score(self, name: str, value: "ScoreValue" = None, **options: Any) -> None:
        """Reports a score of the run, or of a part of it: a number, True or False, or a str, which is the label of a class.

        Options: `id`, `label`, `text`, `comment`, `source`, `metadata`, `created_at`, and one of `task_id`, `event_id` and
        `session_id`.
        """
        report_score(self._reporting, self.run_id, name, value, **options)

    def task(self, name: str, *, input: Any = None) -> "Task":
        """Reports that a task has begun; `with` ends it. Otherwise end it with `complete`, `fail` or `skip`."""
        return Task(self._reporting, self, name, input, self._current_task_id())

    def complete(self, output: Any = None, *, usage: Optional[Dict[str, Any]] = None) -> None:
        """Reports that the run is complete. Anything but a dict becomes `{"value": …}`."""
        self._finish(COMPLETE, {"run_id": self.run_id, "output": to_object(output)}, usage)

    def fail(self, error: Any, *, usage: Optional[Dict[str, Any]] = None) -> None:
        """Reports that the run has failed."""
        message, detail = describe_error(error)
        self._finish(FAIL, {"run_id": self.run_id, "error_message": message, "error_detail": detail}, usage)

    def _current_task_id(self) -> Optional[str]:
        task = _current_task.get()
        return task.task_id if task is not None and task.run is self else None

    def _finish(self, kind: str, body: Dict[str, Any], usage: Optional[Dict[str, Any]]) -> None:
        # The first end counts.
        if self._has_ended:
            return
        self._has_ended = True
        _report(self._reporting, kind, self.run_id, body if usage is None else {**body, "usage": usage})

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, _type: Any, error: Optional[BaseException], _traceback: Any) -> None:
        if error is None:
            self.complete(self.output)
        else:
            self.fail(error)


class Task:
    """A task of a run. As a context manager it completes with `output`, or fails with the exception. Tasks can contain tasks."""

    def __init__(self, reporting: Reporting, run: Run, name: str, input: Any, parent_task_id: Optional[str]):
        self.task_id = uuidv7()
        self.run = run
        self.name = name
        #: What the task completes with at the end of its `with` block.
        self.output: Any = None
        self._reporting = reporting
        self._has_ended = False
        self._entered: List["Token[Optional[Task]]"] = []
        self._started_at = _now()
        more: Dict[str, Any] = {"started_at": self._started_at}
        if input is not None:
            more["input"] = to_object(input)
        if parent_task_id is not None:
            more["parent_task_id"] = parent_task_id
        self._report("running", more)

    def event(self, type: str, payload: Any = None, **options: Any) -> None:
        """Reports an event of the run that is part of this task."""
        self.run.event(type, payload, **{"task_id": self.task_id, **options})

    def score(self, name: str, value: "ScoreValue" = None, **options: Any) -> None:
        """Reports a score of this task, with the options of `run.score`."""
        if "event_id" not in options and "session_id" not in options:
            options = {"task_id": self.task_id, **options}
        self.run.score(name, value, **options)

    def task(self, name: str, *, input: Any = None) -> "Task":
        """Reports that a task has begun that is part of this one."""
        return Task(self._reporting, self.run, name, input, self.task_id)

    def complete(self, output: Any = None) -> None:
        """Reports that the task is complete."""
        self._finish("completed", {} if output is None else {"output": to_object(output)})

    def fail(self, error: Any) -> None:
        """Reports that the task has failed."""
        self._finish("failed", {"error_message": describe_error(error)[0]})

    def skip(self) -> None:
        """Reports that the task was not carried out."""
        self._finish("skipped", {})

    def _finish(self, status: str, more: Dict[str, Any]) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        # The clock may have been set back, and the service refuses an end before the start.
        self._report(status, {**more, "completed_at": max(_now(), self._started_at)})

    def _report(self, status: str, more: Dict[str, Any]) -> None:
        task = {"id": self.task_id, "name": self.name, "status": status, **more}
        _report(self._reporting, TASK, self.run.run_id, task, self.task_id)

    def __enter__(self) -> "Task":
        self._entered.append(_current_task.set(self))
        return self

    def __exit__(self, _type: Any, error: Optional[BaseException], _traceback: Any) -> None:
        _leave(self._entered.pop())
        if error is None:
            self.complete(self.output)
        else:
            self.fail(error)


def _leave(token: "Token[Optional[Task]]") -> None:
    try:
        _current_task.reset(token)
    except ValueError:
        # The block ended in a different context than it began in: for example, another task closed a generator.
        pass


def start_run(reporting: Reporting, fields: Dict[str, Any]) -> Run:
    """Starts a run; `fields` are those of the call, None for what is not given."""
    if fields["agent_id"] is None:
        raise ValueError("no agent: pass agent_id to the client or to the run, or set AGENT_RUN_AGENT_ID")
    run_id = fields["run_id"] or uuidv7()
    body = {name: value for name, value in fields.items() if value is not None}
    body.update(run_id=run_id, input=to_object(fields["input"]))
    run = Run(reporting, run_id)
    _report(reporting, START, run_id, body, parent_run_id=fields["parent_run_id"])
    return run


#: Of a score without a number or a class: None.
ScoreValue = Union[float, bool, str, None]


def report_score(
    reporting: Reporting,
    run_id: str,
    name: str,
    value: ScoreValue = None,
    *,
    id: Optional[str] = None,
    label: Optional[str] = None,
    text: Optional[str] = None,
    comment: Optional[str] = None,
    source: Optional[str] = None,
    metadata: Optional[Dict[str, Any]] = None,
    created_at: Optional[datetime] = None,
    task_id: Optional[str] = None,
    event_id: Optional[str] = None,
    session_id: Optional[str] = None,
) -> None:
    """Reports a score of any run. A label is `value` or `label`."""
    if isinstance(value, str):
        if label not in (None, value):
            reporting.reporter.reject(ValueError("a score has one label; got two"), run_id)
            return
        value, label = None, value
    members = {
        "id": reporting.new_event_id() if id is None else id,
        "run_id": run_id,
        "task_id": task_id,
        "event_id": event_id,
        "session_id": session_id,
        "name": name,
        "value": value,
        "label": label,
        "text": text,
        "comment": comment,
        "source": source,
        "metadata": metadata,
        "created_at": _now() if created_at is None else _timestamp(created_at),
    }
    score = {member: given for member, given in members.items() if given is not None}
    _report(reporting, SCORE, run_id, score)


#: Members of reports that the caller gave.
_FREE_FORM = ("input", "output", "metadata", "usage", "error_detail")


def _report(
    reporting: Reporting,
    kind: str,
    run_id: str,
    report: Dict[str, Any],
    task_id: Optional[str] = None,
    parent_run_id: Optional[str] = None,
) -> None:
    """A value that JSON cannot express is counted: it must not make the agent fail.

    In the start or end of a run or task, it is replaced by an object that says so: the run starts or ends all the same.
    """
    try:
        text = encode(report)
    except Exception as error:
        reporting.reporter.reject(error, run_id)
        if kind in (EVENT, SCORE):
            return
        valid = {name: to_valid_object(value) if name in _FREE_FORM else value for name, value in report.items()}
        try:
            text = encode(valid)
        except Exception:
            # The name of a task, for example, which has been counted.
            return
    reporting.reporter.add(Report(kind, run_id, text, task_id, parent_run_id))


def _now() -> str:
    return _timestamp(datetime.now(timezone.utc))


def _timestamp(at: datetime) -> str:
    return at.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
