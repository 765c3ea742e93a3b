"""What the API has beside reports, by resource. Filters, options and results have the names of the API."""

import math
from typing import Any, Dict, Iterator, Optional

from ._http import Http, segment

#: For calls that last as long as a run or a query.
NO_TIMEOUT = math.inf
#: Large, because the whole list is often wanted.
_PAGE_SIZE = 200


class _Resource:
    """Each method takes `timeout`, seconds for one attempt, and `max_retries`; without them, those of the client."""

    def __init__(self, http: Http):
        self._http = http

    def _get(self, path: str, timeout: Optional[float], max_retries: Optional[int]) -> Dict[str, Any]:
        return self._http.call("GET", path, timeout=timeout, max_retries=max_retries)  # type: ignore[no-any-return]

    def _post(
        self, path: str, body: Dict[str, Any], timeout: Optional[float], max_retries: Optional[int]
    ) -> Dict[str, Any]:
        given = {name: value for name, value in body.items() if value is not None}
        return self._http.call("POST", path, body=given, timeout=timeout, max_retries=max_retries)  # type: ignore[no-any-return]

    def _list(
        self,
        path: str,
        filters: Dict[str, Any],
        timeout: Optional[float],
        max_retries: Optional[int],
        cursor_name: str = "cursor",
    ) -> Iterator[Dict[str, Any]]:
        """All items; further pages are read as they are needed."""
        query = {"limit": _PAGE_SIZE, **filters}
        while True:
            page = self._http.call("GET", path, query=query, timeout=timeout, max_retries=max_retries)
            yield from page["items"]
            if page["next_cursor"] is None:
                return
            query[cursor_name] = page["next_cursor"]


class Runs(_Resource):
    """Runs of external and hosted agents."""

    def list(
        self, *, timeout: Optional[float] = None, max_retries: Optional[int] = None, **filters: Any
    ) -> Iterator[Dict[str, Any]]:
        """Newest first. Filters: `status`, `agent_id`, `tag`, `from`, `to` and the others of the API."""
        return self._list("/api/v1/runs", filters, timeout, max_retries)

    def get(
        self, run_id: str, *, timeout: Optional[float] = None, max_retries: Optional[int] = None
    ) -> Dict[str, Any]:
        return self._get(f"/api/v1/runs/{segment(run_id)}", timeout, max_retries)

    def events(
        self, run_id: str, *, timeout: Optional[float] = None, max_retries: Optional[int] = None, **filters: Any
    ) -> Iterator[Dict[str, Any]]:
        """The events of a run, oldest first. Filters: `type`, `level`, `after_seq`."""
        return self._list(f"/api/v1/runs/{segment(run_id)}/events", filters, timeout, max_retries, "after_seq")

    def tasks(
        self, run_id: str, *, timeout: Optional[float] = None, max_retries: Optional[int] = None, **filters: Any
    ) -> Iterator[Dict[str, Any]]:
        """The tasks of a run, newest first."""
        return self._list(f"/api/v1/runs/{segment(run_id)}/tasks", filters, timeout, max_retries)

    def children(
        self, run_id: str, *, timeout: Optional[float] = None, max_retries: Optional[int] = None, **filters: Any
    ) -> Iterator[Dict[str, Any]]:
        """The runs that a run has started, newest first."""
        return self._list(f"/api/v1/runs/{segment(run_id)}/children", filters, timeout, max_retries)

    def cancel(
        self,
        run_id: str,
        *,
        reason: Optional[str] = None,
        timeout: Optional[float] = None,
        max_retries: Optional[int] = None,
    ) -> Dict[str, Any]:
        return self._post(f"/api/v1/runs/{segment(run_id)}/cancel", {"reason": reason}, timeout, max_retries)


class Agents(_Resource):
    """Agents of the workspace."""

    def list(
        self, *, timeout: Optional[float] = None, max_retries: Optional[int] = None, **filters: Any
    ) -> Iterator[Dict[str, Any]]:
        """Newest first. Filters: `status`, `runtime_type`."""
        return self._list("/api/v1/agents", filters, timeout, max_retries)

    def get(
        self, agent_id: str, *, timeout: Optional[float] = None, max_retries: Optional[int] = None
    ) -> Dict[str, Any]:
        return self._get(f"/api/v1/agents/{segment(agent_id)}", timeout, max_retries)

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
        body = {"input": input or {}, **options}
        return self._post(f"/api/v1/agents/{segment(agent_id)}/invoke", body, timeout, max_retries)


class Approvals(_Resource):
    """Calls of tools that wait for a person."""

    def list(
        self, *, timeout: Optional[float] = None, max_retries: Optional[int] = None, **filters: Any
    ) -> Iterator[Dict[str, Any]]:
        """Newest first. Filter: `status`."""
        return self._list("/api/v1/approvals", filters, timeout, max_retries)

    def approve(
        self,
        approval_id: str,
        *,
        comment: Optional[str] = None,
        edited_input: Optional[Dict[str, Any]] = None,
        background: Optional[bool] = None,
        timeout: float = NO_TIMEOUT,
        max_retries: Optional[int] = None,
    ) -> Dict[str, Any]:
        """Approves a call. Returns how the run continues, as `agents.invoke` does."""
        body = {"comment": comment, "edited_input": edited_input, "background": background}
        return self._post(f"/api/v1/approvals/{segment(approval_id)}/approve", body, timeout, max_retries)

    def reject(
        self,
        approval_id: str,
        *,
        comment: Optional[str] = None,
        background: Optional[bool] = None,
        timeout: float = NO_TIMEOUT,
        max_retries: Optional[int] = None,
    ) -> Dict[str, Any]:
        """Rejects a call; the model gets the comment."""
        body = {"comment": comment, "background": background}
        return self._post(f"/api/v1/approvals/{segment(approval_id)}/reject", body, timeout, max_retries)


class InputRequests(_Resource):
    """Questions of models that wait for a person."""

    def list(
        self, *, timeout: Optional[float] = None, max_retries: Optional[int] = None, **filters: Any
    ) -> Iterator[Dict[str, Any]]:
        """Newest first. Filter: `status`."""
        return self._list("/api/v1/input-requests", filters, timeout, max_retries)

    def answer(
        self,
        request_id: str,
        answer: str,
        *,
        background: Optional[bool] = None,
        timeout: float = NO_TIMEOUT,
        max_retries: Optional[int] = None,
    ) -> Dict[str, Any]:
        """Answers a question. Returns how the run continues, as `agents.invoke` does."""
        body = {"answer": answer, "background": background}
        return self._post(f"/api/v1/input-requests/{segment(request_id)}/answer", body, timeout, max_retries)
