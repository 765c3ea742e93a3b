import logging
import os
import time
from typing import Any, Callable, Dict, Optional, Sequence

from ._api import NO_TIMEOUT, Agents, Approvals, InputRequests, Runs
from ._errors import ReportError
from ._exit import on_exit
from ._http import Http, Secret
from ._ids import event_ids
from ._reporter import Reporter, ReporterOptions, Stats
from ._run import Reporting, Run, ScoreValue, report_score, start_run
from ._spool import Spool

#: How the keys of a workspace begin.
_WORKSPACE_KEY = "svc_ws_"
_WARNING_INTERVAL_SECONDS = 5.0


class Client:
    """A client of the Agent Run Service: docs/client.md describes each option. Times are in seconds."""

    def __init__(
        self,
        *,
        url: Optional[str] = None,
        key: Optional[str] = None,
        agent_id: Optional[str] = None,
        when_full: str = "drop",
        wait_timeout: float = 5.0,
        buffer_bytes: int = 2 * 2**20,
        flush_interval: float = 0.15,
        spool: Optional[str] = None,
        spool_bytes: int = 2**30,
        compress: Optional[bool] = None,
        on_error: Optional[Callable[[ReportError], Any]] = None,
        flush_at_exit: bool = True,
        close_timeout: float = 5.0,
        timeout: float = 30.0,
        max_retries: int = 10,
    ):
        url = (url or os.environ.get("AGENT_RUN_URL") or "http://127.0.0.1:3000").strip()
        key = Secret((key or os.environ.get("AGENT_RUN_KEY") or "").strip())
        if not url.startswith(("http://", "https://")):
            raise ValueError(f'url must begin with http:// or https://; got "{url}"')
        if not key:
            raise ValueError("no key: pass key to the client, or set AGENT_RUN_KEY")
        if not all("!" <= each <= "~" for each in key):
            raise ValueError("key must consist of printable ASCII characters")
        if when_full not in ("wait", "drop"):
            raise ValueError(f'when_full must be "wait" or "drop"; got "{when_full}"')
        self._url = url
        self._agent_id = agent_id or os.environ.get("AGENT_RUN_AGENT_ID")
        self._close_timeout = close_timeout
        self._http = Http(url, key, compress=compress, timeout=timeout, max_retries=max_retries)
        self.runs = Runs(self._http)
        self.agents = Agents(self._http)
        self.approvals = Approvals(self._http)
        self.input_requests = InputRequests(self._http)
        self._on_error = _guarded(on_error)
        opened = None if spool is None else Spool(spool)
        room = (when_full, wait_timeout, buffer_bytes)
        self._reporter = Reporter(
            ReporterOptions(self._http, self._on_error, *room, flush_interval, opened, spool_bytes)
        )
        if key.startswith(_WORKSPACE_KEY):
            self._reporter.key_problem = _workspace_key_problem(url, self._agent_id)
        self._reporting = Reporting(self._reporter, _per_process(event_ids))
        self._forget_exit = on_exit(self._finish) if flush_at_exit else lambda: None

    @property
    def stats(self) -> Stats:
        return self._reporter.stats

    def run(
        self,
        *,
        agent_id: Optional[str] = None,
        input: Any = None,
        tags: Optional[Sequence[str]] = None,
        metadata: Optional[Dict[str, Any]] = None,
        external_run_id: Optional[str] = None,
        parent_run_id: Optional[str] = None,
        session_id: Optional[str] = None,
        external_user_id: Optional[str] = None,
        trigger_type: Optional[str] = None,
        run_id: Optional[str] = None,
    ) -> Run:
        """Reports the start of a run; `with` ends it. Otherwise end it with `run.complete` or `run.fail`.

        Raises ValueError without an agent.
        """
        fields = {
            "run_id": run_id,
            "agent_id": agent_id or self._agent_id,
            "trigger_type": trigger_type,
            "tags": None if tags is None else list(tags),
            "external_run_id": external_run_id,
            "parent_run_id": parent_run_id,
            "session_id": session_id,
            "external_user_id": external_user_id,
            "metadata": metadata,
            "input": input,
        }
        return start_run(self._reporting, fields)

    def score(self, run_id: str, name: str, value: ScoreValue = None, **options: Any) -> None:
        """Reports a score of any run, with the options of `run.score`."""
        report_score(self._reporting, run_id, name, value, **options)

    def flush(self, timeout: Optional[float] = None) -> bool:
        """Sends all reports now. Returns whether all that was reported before is acknowledged or refused."""
        return self._reporter.flush(timeout)

    def close(self, timeout: Optional[float] = None) -> bool:
        """Sends what is left, and ends the client. Returns whether everything was sent."""
        self._forget_exit()
        return self._reporter.close(self._close_timeout if timeout is None else timeout)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Dict[str, Any]] = None,
        body: Any = None,
        timeout: Optional[float] = None,
        max_retries: Optional[int] = None,
    ) -> Any:
        """Calls any operation of the API and returns `data`; repeats it after temporary failures.

        `timeout` is for one attempt. Raises ServiceError, NoResponseError.
        """
        return self._http.call(method, path, query=query, body=body, timeout=timeout, max_retries=max_retries)

    def query(
        self,
        sql: str,
        params: Optional[Dict[str, Any]] = None,
        *,
        wait_for: Any = None,
        timeout: float = NO_TIMEOUT,
        max_retries: Optional[int] = None,
    ) -> Dict[str, Any]:
        """Runs one SELECT. Needs a workspace key. `rows` of the result are dicts. Raises ServiceError, NoResponseError."""
        body = {"query": sql, "params": params or {}}
        if wait_for is not None:
            body["wait_for"] = wait_for
        return self._http.call(  # type: ignore[no-any-return]
            "POST", "/api/v1/query", body=body, timeout=timeout, max_retries=max_retries, is_repeatable=True
        )

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client(url={self._url!r})"

    def _finish(self) -> None:
        self._reporter.flush_at_exit(self._close_timeout)


def _workspace_key_problem(url: str, agent_id: Optional[str]) -> str:
    path = f"{url.rstrip('/')}/api/v1/agents/{agent_id or '<agent id>'}/keys"
    return (
        f"the key is a workspace key ({_WORKSPACE_KEY}…), but only a key of the agent can report its runs. Make one and"
        f' pass it as key, or set AGENT_RUN_KEY: curl -X POST {path} -H "Authorization: Bearer <the workspace key>"'
    )


def _per_process(make: Callable[[], Callable[[], str]]) -> Callable[[], str]:
    """Ids of a forked process must differ from those of its parent."""
    state = {"pid": os.getpid(), "next": make()}

    def next_id() -> str:
        if os.getpid() != state["pid"]:
            state.update(pid=os.getpid(), next=make())
        return state["next"]()  # type: ignore[operator]

    return next_id


def _guarded(on_error: Optional[Callable[[ReportError], Any]]) -> Callable[[ReportError], None]:
    """A handler that fails must not stop the reports; what it should have handled is logged instead."""
    quiet_until = [float("-inf")]

    def warn(error: ReportError) -> None:
        now = time.monotonic()
        if now >= quiet_until[0]:
            quiet_until[0] = now + _WARNING_INTERVAL_SECONDS
            logging.getLogger("agent_run_service").warning("%s", error)

    def handle(error: ReportError) -> None:
        if on_error is None:
            return warn(error)
        try:
            on_error(error)
        except Exception:
            warn(error)

    return handle
