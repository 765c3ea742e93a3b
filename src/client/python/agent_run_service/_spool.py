import os
import re
from collections import deque
from typing import Deque, Iterator, List, Tuple

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_CHUNK_BYTES = 256 * 1024
#: Acknowledged reports at the beginning of the file are removed when there are this many bytes of them.
_COMPACT_BYTES = 16 * 2**20
#: A line has a report, `e <run> <JSON>`, or the position up to which reports are acknowledged, `a 123`.
_REPORT = re.compile(r"([setcf]) ([0-9a-fA-F-]{36}) (\{.*\})", re.DOTALL)


class Spool:
    """A file that holds reports until they are acknowledged. Only one client can use it at a time."""

    def __init__(self, path: str):
        """Raises OSError when the file cannot be written or another client uses it."""
        if fcntl is None:
            raise OSError("a spool needs fcntl, which this system does not have")
        self._path = path
        # A file of its own, because the spool is replaced when it is compacted.
        self._lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise OSError(f"the spool {path} is in use by another client") from None
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self.unread = 0
        self._end = self._read_at = self._acknowledged_to = 0
        #: Where each report ends that was read and is not acknowledged.
        self._ends: Deque[int] = deque()
        self._recover()

    @property
    def bytes(self) -> int:
        """Bytes of reports that are not acknowledged yet."""
        return self._end - self._acknowledged_to

    def append(self, kind: str, run_id: str, text: str) -> None:
        """Stores a report. When it returns, the report survives a crash of this process."""
        self._write(f"{kind} {run_id} {text}\n")
        self.unread += 1

    def skip(self) -> None:
        """Marks the newest report as read. Only while there is no other unread one."""
        self._read_at = self._end
        self._ends.append(self._end)
        self.unread -= 1

    def read(self, size: int) -> List[Tuple[str, str, str]]:
        """The next unread reports, about `size` bytes of them."""
        reports: List[Tuple[str, str, str]] = []
        until = self._read_at + size
        for line, end in self._lines(self._read_at):
            self._read_at = end
            found = _REPORT.fullmatch(line.decode())
            if found is not None:
                reports.append((found[1], found[2], found[3]))
                self._ends.append(end)
            if end >= until:
                break
        self.unread = 0 if not reports else self.unread - len(reports)
        return reports

    def acknowledge(self, reports: int) -> None:
        """The first reports, in the order in which they were appended, are no longer needed."""
        for _ in range(reports):
            self._acknowledged_to = self._ends.popleft()
        try:
            if self.unread == 0 and not self._ends:
                self._clear()
            elif self._acknowledged_to >= max(_COMPACT_BYTES, self.bytes):
                self._compact()
            else:
                self._write(f"a {self._acknowledged_to}\n")
        except OSError:
            # A full disk. After a crash these reports would be sent again, which changes nothing.
            pass

    def close(self) -> None:
        os.close(self._file)
        if self._end == 0:
            os.unlink(self._path)
        os.close(self._lock)

    def _recover(self) -> None:
        """Finds what an earlier process left. A last line without an end was never reported as stored."""
        for line, end in self._lines(0):
            self._end = end
            if line.startswith(b"a "):
                self._acknowledged_to = int(line[2:])
        self._read_at = self._acknowledged_to
        self.unread = sum(1 for line, _ in self._lines(self._read_at) if not line.startswith(b"a "))
        if self.unread == 0:
            self._clear()
        else:
            os.ftruncate(self._file, self._end)

    def _write(self, line: str) -> None:
        """A line that could only be written in part is overwritten by the next one."""
        data = line.encode()
        written = 0
        while written < len(data):
            written += os.pwrite(self._file, data[written:], self._end + written)
        self._end += len(data)

    def _clear(self) -> None:
        os.ftruncate(self._file, 0)
        self._end = self._read_at = self._acknowledged_to = 0
        self._ends.clear()

    def _compact(self) -> None:
        """Replaces the file by one that has only the reports that are not acknowledged."""
        temporary = f"{self._path}.new"
        file = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        ends: Deque[int] = deque()
        to = read_at = 0
        for line, end in self._lines(self._acknowledged_to):
            if line.startswith(b"a "):
                continue
            to += os.pwrite(file, line + b"\n", to)
            if end <= self._read_at:
                ends.append(to)
                read_at = to
        os.replace(temporary, self._path)
        os.close(self._file)
        self._file, self._ends, self._end, self._read_at, self._acknowledged_to = file, ends, to, read_at, 0

    def _lines(self, start: int) -> Iterator[Tuple[bytes, int]]:
        """The complete lines of the file from a position on, and where each ends."""
        rest = b""
        at = start
        while True:
            chunk = os.pread(self._file, _CHUNK_BYTES, at + len(rest))
            if not chunk:
                return
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                at += len(line) + 1
                yield line, at
