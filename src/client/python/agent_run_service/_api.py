"""What the API has beside reports, by resource. Filters, options and results have the names of the API."""

import math
from typing import Any, Dict, Iterator, List, Optional

from ._http import Http, segment

#: For calls that last as long as a run or a query.
NO_TIMEOUT = math.inf
#: Large, because the whole list is often wanted.
_PAGE_SIZE = 200


class _Resource:
    """Each method takes `timeout`, seconds for one attempt, and `max_retries`; without them, those of the client."""

    def __init__(self, http: Http):
        self._http = http

    def _get(self, path: str, limits: Dict[str, Any]) -> Dict[str, Any]:
        return self._http.call("GET", path, **limits)  # type: ignore[no-any-return]

    def _post(self, path: str, body: Dict[str, Any], limits: Dict[str, Any]) -> Dict[str, Any]:
        given = {name: value for name, value in body.items() if value is not None}
        return self._http.call("POST", path, body=given, **limits)  # type: ignore[no-any-return]

    def _list(self, path: str, filters: Dict[str, Any], cursor_name: str = "cursor") -> Iterator[Dict[str, Any]]:
        """All items; further pages are read as they are needed."""
        query = {"limit": _PAGE_SIZE, **filters}
        limits = {name: query.pop(name) for name in ("timeout", "max_retries") if name in query}
        while True:
            page = self._http.call("GET", path, query=query, **limits)
            yield from page["items"]
            if page["next_cursor"] is None:
                return
            query[cursor_name] = page["next_cursor"]


class Runs(_Resource):
    """Runs of external and hosted agents."""

    def list(self, **filters: Any) -> Iterator[Dict[str, Any]]:
        """Newest first. Filters: `status`, `agent_id`, `tag`, `from`, `to` and the others of the API.

        `q` searches the texts of runs; `match` of each run then says where it was found.
        """
        return self._list("/api/v1/runs", filters)

    def get(self, run_id: str, **limits: Optional[float]) -> Dict[str, Any]:
        return self._get(f"/api/v1/runs/{segment(run_id)}", limits)

    def events(self, run_id: str, **filters: Any) -> Iterator[Dict[str, Any]]:
        """The events of a run, oldest first. Filters: `type`, `level`, `after_seq`."""
        return self._list(f"/api/v1/runs/{segment(run_id)}/events", filters, "after_seq")

    def conversation(self, run_id: str, **filters: Any) -> Iterator[Dict[str, Any]]:
        """What was said in a run, whatever format it was reported in, oldest first."""
        return self._list(f"/api/v1/runs/{segment(run_id)}/conversation", filters)

    def tasks(self, run_id: str, **filters: Any) -> Iterator[Dict[str, Any]]:
        """The tasks of a run, newest first."""
        return self._list(f"/api/v1/runs/{segment(run_id)}/tasks", filters)

    def scores(self, run_id: str, **filters: Any) -> Iterator[Dict[str, Any]]:
        """The scores of a run and of its parts, newest first."""
        return self._list(f"/api/v1/runs/{segment(run_id)}/scores", filters)

    def children(self, run_id: str, **filters: Any) -> Iterator[Dict[str, Any]]:
        """The runs that a run has started, newest first."""
        return self._list(f"/api/v1/runs/{segment(run_id)}/children", filters)

    def update(
        self,
        run_id: str,
        *,
        tags: Optional[List[str]] = None,
        metadata: Optional[Dict[str, Any]] = None,
        if_version: Optional[int] = None,
        **limits: Optional[float],
    ) -> Dict[str, Any]:
        """Replaces the tags or the metadata.

        With `if_version`, the `version` that was read: at another one it raises a `ServiceError` whose reason is
        `version_changed`.
        """
        given = {name: value for name, value in (("tags", tags), ("metadata", metadata)) if value is not None}
        path = f"/api/v1/runs/{segment(run_id)}"
        return self._http.call("PATCH", path, body=given, if_version=if_version, **limits)  # type: ignore

    def cancel(self, run_id: str, *, reason: Optional[str] = None, **limits: Optional[float]) -> Dict[str, Any]:
        return self._post(f"/api/v1/runs/{segment(run_id)}/cancel", {"reason": reason}, limits)

    def delete(self, run_id: str, **limits: Optional[float]) -> Dict[str, Any]:
        """Deletes a run that has ended, from every store: the answer comes before `erasure` says `done`."""
        return self._http.call("DELETE", f"/api/v1/runs/{segment(run_id)}", **limits)  # type: ignore

    def delete_score(self, run_id: str, score_id: str, **limits: Optional[float]) -> Dict[str, Any]:
        """Deletes a score from every store, like `delete`."""
        path = f"/api/v1/runs/{segment(run_id)}/scores/{segment(score_id)}"
        return self._http.call("DELETE", path, **limits)  # type: ignore

    def erasure(self, erasure_id: str, **limits: Optional[float]) -> Dict[str, Any]:
        """How far the deletion of a run or a score is."""
        return self._get(f"/api/v1/erasures/{segment(erasure_id)}", limits)


class Agents(_Resource):
    """Agents of the workspace."""

    def list(self, **filters: Any) -> Iterator[Dict[str, Any]]:
        """Newest first. Filters: `status`, `runtime_type`."""
        return self._list("/api/v1/agents", filters)

    def get(self, agent_id: str, **limits: Optional[float]) -> Dict[str, Any]:
        return self._get(f"/api/v1/agents/{segment(agent_id)}", limits)

    def versions(self, agent_id: str, **filters: Any) -> Iterator[Dict[str, Any]]:
        """The versions of an agent without their configurations, newest first."""
        return self._list(f"/api/v1/agents/{segment(agent_id)}/versions", filters)

    def version(self, agent_id: str, version: int, **limits: Optional[float]) -> Dict[str, Any]:
        """A version of an agent with its configuration; a run has its number in `agent_version`."""
        return self._get(f"/api/v1/agents/{segment(agent_id)}/versions/{version:d}", limits)

    def restore(self, agent_id: str, version: int, **limits: Optional[float]) -> Dict[str, Any]:
        """Makes the configuration of a version the agent's next version."""
        return self._post(f"/api/v1/agents/{segment(agent_id)}/versions/{version:d}/restore", {}, limits)

    def invoke(
        self,
        agent_id: str,
        input: Optional[Dict[str, Any]] = None,
        *,
        timeout: float = NO_TIMEOUT,
        max_retries: Optional[int] = None,
        **options: Any,
    ) -> Dict[str, Any]:
        """Runs a hosted agent until it ends or waits for a person; `status` of the result says which it is.

        Options: `prompt_variables`, `session_id`, `start_session`, `external_user_id`, `history`, `parent_run_id`,
        `background`.
        """
        limits = {"timeout": timeout, "max_retries": max_retries}
        return self._post(f"/api/v1/agents/{segment(agent_id)}/invoke", {"input": input or {}, **options}, limits)


class _Decisions(_Resource):
    """A decision has no `timeout` unless one is given, because it lasts as long as the run continues."""

    def _decide(self, path: str, body: Dict[str, Any], limits: Dict[str, Any]) -> Dict[str, Any]:
        return self._post(path, body, {"timeout": NO_TIMEOUT, **limits})


class Approvals(_Decisions):
    """Calls of tools that wait for a person."""

    def list(self, **filters: Any) -> Iterator[Dict[str, Any]]:
        """Newest first. Filter: `status`."""
        return self._list("/api/v1/approvals", filters)

    def approve(
        self,
        approval_id: str,
        *,
        comment: Optional[str] = None,
        edited_input: Optional[Dict[str, Any]] = None,
        background: Optional[bool] = None,
        **limits: Optional[float],
    ) -> Dict[str, Any]:
        """Approves a call. Returns how the run continues, as `agents.invoke` does."""
        body = {"comment": comment, "edited_input": edited_input, "background": background}
        return self._decide(f"/api/v1/approvals/{segment(approval_id)}/approve", body, limits)

    def reject(
        self,
        approval_id: str,
        *,
        comment: Optional[str] = None,
        background: Optional[bool] = None,
        **limits: Optional[float],
    ) -> Dict[str, Any]:
        """Rejects a call; the model gets the comment."""
        body = {"comment": comment, "background": background}
        return self._decide(f"/api/v1/approvals/{segment(approval_id)}/reject", body, limits)


class InputRequests(_Decisions):
    """Questions of models that wait for a person."""

    def list(self, **filters: Any) -> Iterator[Dict[str, Any]]:
        """Newest first. Filter: `status`."""
        return self._list("/api/v1/input-requests", filters)

    def answer(
        self, request_id: str, answer: str, *, background: Optional[bool] = None, **limits: Optional[float]
    ) -> Dict[str, Any]:
        """Answers a question. Returns how the run continues, as `agents.invoke` does."""
        body = {"answer": answer, "background": background}
        return self._decide(f"/api/v1/input-requests/{segment(request_id)}/answer", body, limits)
