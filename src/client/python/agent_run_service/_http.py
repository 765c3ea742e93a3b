import gzip
import http.client
import json
import random
import re
import threading
import time
from typing import Any, Dict, Optional, Union
from urllib.parse import quote, urlencode, urlsplit

from ._deadline import Connection, SecureConnection
from ._errors import NoResponseError, ServiceError
from ._ids import uuidv7
from ._version import VERSION

#: A service that says more is asked again after this time.
_RETRY_AFTER_MAX_SECONDS = 60.0
_REDIRECT_LENGTH_MAX = 200
_COMPRESS_BYTES_MIN = 1_024
_BACKOFF_MIN_SECONDS = 0.05
_BACKOFF_MAX_SECONDS = 5.0


def backoff(failures: int) -> float:
    """Seconds to wait after consecutive failures. Random, so that clients do not all return at the same moment."""
    limit = min(_BACKOFF_MAX_SECONDS, _BACKOFF_MIN_SECONDS * 2 ** min(failures, 20))
    return random.uniform(limit / 2, limit)


def is_temporary(error: Exception) -> bool:
    """Errors other than ServiceError mean that there was no complete response."""
    return not isinstance(error, ServiceError) or error.is_temporary


class Secret(str):
    """Text that tracebacks and dumps of objects do not show."""

    def __repr__(self) -> str:
        return "'***'"


class Http:
    """Calls the service with one key; each thread has its own connection. Redirects are not followed."""

    def __init__(self, url: str, key: str, *, compress: Optional[bool], timeout: float, max_retries: int):
        parts = urlsplit(url)
        self._host, self._port, self._path = parts.hostname or "", parts.port, parts.path.rstrip("/")
        self._connection_class = SecureConnection if parts.scheme == "https" else Connection
        self._key = key
        self._timeout = timeout
        self._max_retries = max_retries
        is_local = re.fullmatch(r"localhost|127(\.\d+){3}|::1", self._host) is not None
        self._compress = not is_local if compress is None else compress
        self.forget_connections()

    def forget_connections(self) -> None:
        """In a forked process: the connections belong to its parent."""
        self._local = threading.local()

    def attempt(
        self,
        method: str,
        path: str,
        body: Union[bytes, None] = None,
        headers: Optional[Dict[str, str]] = None,
        timeout: Optional[float] = None,
    ) -> Any:
        """Sends a call once and returns `data`. Raises ServiceError, OSError, http.client.HTTPException, ValueError."""
        sent = {
            "authorization": Secret(f"Bearer {self._key}"),
            "user-agent": f"agent-run-service-python/{VERSION}",
            **(headers or {}),
        }
        if body is not None:
            sent["content-type"] = "application/json"
            if self._compress and len(body) >= _COMPRESS_BYTES_MIN:
                sent["content-encoding"] = "gzip"
                body = gzip.compress(body, 6)
        connection = self._connection()
        try:
            connection.limit(self._timeout if timeout is None else timeout)
            connection.request(method, self._path + path, body, sent)
            response = connection.getresponse()
            text = response.read()
        except BaseException as error:
            # Nothing can be sent on it any more.
            self.close()
            # What http.client had in hand contains the key, and some loggers print it.
            error.__context__ = None
            raise error.with_traceback(None)
        if not 200 <= response.status < 300:
            raise _service_error(response, text)
        answer = json.loads(text)
        if not isinstance(answer, dict) or "data" not in answer or answer.get("error", 0) is not None:
            raise not_ours(response.status, response.getheader("x-request-id"))
        return answer["data"]

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Dict[str, Any]] = None,
        body: Any = None,
        timeout: Optional[float] = None,
        max_retries: Optional[int] = None,
        is_repeatable: bool = False,
        if_version: Optional[int] = None,
    ) -> Any:
        """The same, repeated with the same bytes after temporary failures. Raises ServiceError, NoResponseError."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        target = path + ("?" + urlencode(given, doseq=True) if given else "")
        encoded = None if body is None else json.dumps(body).encode()
        # Repeating a POST must not have a second effect.
        headers = {"idempotency-key": uuidv7()} if method == "POST" and not is_repeatable else {}
        if if_version is not None:
            headers["if-match"] = f'"{if_version}"'
        retries = self._max_retries if max_retries is None else max_retries
        failures = 0
        while True:
            try:
                return self.attempt(method, target, encoded, headers, timeout)
            except (OSError, http.client.HTTPException, ValueError, ServiceError) as error:
                if not is_temporary(error):
                    raise
                failures += 1
                if failures > retries:
                    raise NoResponseError(f"the call to {path} failed: {error}") from error
                delay = max(retry_after_of(error), backoff(failures))
            time.sleep(delay)

    def close(self) -> None:
        """Closes the connection of this thread."""
        connection = self._local.__dict__.pop("connection", None)
        if connection is not None:
            connection.close()

    def _connection(self) -> Connection:
        connection: Optional[Connection] = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connection_class(self._host, self._port)
        return connection


def retry_after_of(error: Exception) -> float:
    return error.retry_after or 0.0 if isinstance(error, ServiceError) else 0.0


def segment(value: str) -> str:
    """A value as a part of a path."""
    return quote(value, safe="")


def not_ours(status: int, request_id: Optional[str] = None) -> ServiceError:
    """The error for a successful response that the service would not give."""
    return ServiceError(status, request_id=request_id)


def _service_error(response: http.client.HTTPResponse, text: bytes) -> ServiceError:
    status, retry_after = response.status, _seconds(response.getheader("retry-after"))
    request_id = response.getheader("x-request-id")
    try:
        error = json.loads(text)["error"]
        code, detail = error["code"], str(error["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        code = None
    if not isinstance(code, str):
        return ServiceError(status, detail=_redirect_of(response), retry_after=retry_after, request_id=request_id)
    is_final = status < 500 and retry_after is None and response.getheader("x-refused") == "request"
    return ServiceError(
        status,
        code=code,
        detail=detail,
        reason=error.get("reason"),
        param=error.get("param"),
        problems=error.get("problems", ()),
        retry_after=retry_after,
        request_id=request_id,
        is_final=is_final,
    )


def _seconds(retry_after: Optional[str]) -> Optional[float]:
    if retry_after is None:
        return None
    is_number = re.fullmatch("[0-9]+", retry_after.strip()) is not None
    return min(float(retry_after), _RETRY_AFTER_MAX_SECONDS) if is_number else 0.0


def _redirect_of(response: http.client.HTTPResponse) -> str:
    location = response.getheader("location")
    return "" if location is None else f", but a redirect to {re.sub('[?#].*', '', location)[:_REDIRECT_LENGTH_MAX]}"
