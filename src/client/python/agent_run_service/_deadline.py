"""Connections on which a whole request, and not each of its parts, has to end in time."""

import http.client
import io
import math
import socket
import threading
import time
from typing import Any, Optional


class _Socket:
    """What http.client needs of a socket. Each operation gets the time that is left."""

    def __init__(self, connection: "Connection", given: socket.socket):
        self._connection = connection
        self._given = given

    def sendall(self, data: Any) -> None:
        rest = memoryview(data)
        while rest:
            self.arm()
            rest = rest[self._given.send(rest) :]

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self, self._given.makefile("rb", buffering=0)))

    def close(self) -> None:
        self._given.close()

    def arm(self) -> None:
        self._given.settimeout(self._connection.time_left())


class _Reader(io.RawIOBase):
    def __init__(self, timed: _Socket, raw: Any):
        self._timed = timed
        self._raw = raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        self._timed.arm()
        return self._raw.readinto(buffer)  # type: ignore[no-any-return]

    def close(self) -> None:
        self._raw.close()
        super().close()


class Connection(http.client.HTTPConnection):
    """A connection to the service."""

    _ends_at = math.inf

    def limit(self, seconds: float) -> None:
        """How long everything until the end of the next response may take."""
        self._ends_at = time.monotonic() + seconds

    def time_left(self) -> Optional[float]:
        """Raises TimeoutError when no time is left."""
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise TimeoutError("the service did not respond in time")
        return None if left > threading.TIMEOUT_MAX else left

    def connect(self) -> None:
        self.timeout = self.time_left()
        super().connect()
        self.sock: Any = _Socket(self, self.sock)


class SecureConnection(Connection, http.client.HTTPSConnection):
    """The same with TLS."""
