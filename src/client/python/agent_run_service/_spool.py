import json
import os
import re
from collections import deque
from typing import Deque, Iterator, List, Optional, Tuple

from ._report import COMPLETE, EVENT, FAIL, SCORE, START, TASK, Report

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_CHUNK_BYTES = 256 * 1024
#: Acknowledged reports at the beginning of the file are removed when there are this many bytes of them.
_COMPACT_BYTES = 16 * 2**20
#: A line has a report, `e <run> <JSON>`, or the position up to which reports are acknowledged with two check digits,
#: `a 123 26`. A line that was damaged is kept in another file and replaced by spaces.
_REPORT = re.compile(r"([setcfv]) ([0-9a-fA-F-]{36}) (\{.*\})", re.DOTALL)
_ACKNOWLEDGED = re.compile(rb"a ([0-9]{1,15})(?: ([0-9]{2}))?")
#: A position, or the beginning of one. When it is wrong, reports are sent again, which changes nothing.
_POSITION = re.compile(rb"a( [0-9]*( [0-9]*)?)?")
_RUN_ID = re.compile(r"[0-9a-fA-F-]{36}")
#: The beginning of a report's line. JSON has no control characters.
_REPORT_BEGUN = re.compile(rb"[setcfv]( ([0-9a-fA-F-]{0,36}|[0-9a-fA-F-]{36} (\{[ -\xff]*)?))?")
#: A write that a kill interrupts ends where a page of memory does; all sizes of pages are multiples of this.
_PAGE_BYTES = 4096

#: The letter of each kind in the file.
_LETTERS = {START: "s", EVENT: "e", TASK: "t", COMPLETE: "c", FAIL: "f", SCORE: "v"}
_KINDS = {letter: kind for kind, letter in _LETTERS.items()}


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
        self.unread = 0
        self._end = self._read_at = self._acknowledged_to = 0
        #: Where each report ends that was read and is not acknowledged.
        self._ends: Deque[int] = deque()
        self._compact_at = _COMPACT_BYTES
        self._damaged = 0
        #: Why a damaged line could not be kept.
        self._not_kept: Optional[OSError] = None
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            self._recover()
        except BaseException:
            os.close(self._lock)
            raise

    @property
    def bytes(self) -> int:
        """Bytes of reports that are not acknowledged yet."""
        return self._end - self._acknowledged_to

    def append(self, report: Report) -> None:
        """Stores a report. When it returns, the report survives a crash of this process. Raises OSError, ValueError."""
        if _RUN_ID.fullmatch(report.run_id) is None:
            raise ValueError("the id of the run is not a UUID")
        self._write(f"{_LETTERS[report.kind]} {report.run_id} {report.text}\n")
        self.unread += 1

    def append_nothing(self) -> None:
        """Counts a report that could not be stored as one that was read, because its writer has it in memory."""
        self._ends.append(self._end)

    def skip(self) -> None:
        """Marks the newest report as read. Only while there is no other unread one."""
        self._read_at = self._end
        self._ends.append(self._end)
        self.unread -= 1

    def read(self, size: int) -> List[Optional[Report]]:
        """The next unread reports, about `size` bytes of them; None for one that is damaged."""
        reports: List[Optional[Report]] = []
        until = self._read_at + size
        for line, end in self._lines(self._read_at):
            self._read_at = end
            if _has_report(line):
                report = _parse(line)
                if report is None:
                    self._set_aside(line, end - len(line) - 1)
                reports.append(report)
                self._ends.append(end)
            if end >= until:
                break
        self.unread = 0 if self._read_at >= self._end else max(0, self.unread - len(reports))
        return reports

    def take_damage(self) -> Optional[Tuple[int, str]]:
        """How many reports were found to be damaged since the last call, and where they are."""
        reports = self._damaged
        if reports == 0:
            return None
        kept = f"kept in {self._aside_path}" if self._not_kept is None else f"they could not be kept: {self._not_kept}"
        self._damaged, self._not_kept = 0, None
        return reports, f"damaged in the spool {self._path}; {kept}"

    def acknowledge(self, reports: int) -> None:
        """The first reports, in the order in which they were appended, are no longer needed."""
        for _ in range(reports):
            self._acknowledged_to = self._ends.popleft()
        try:
            if self.unread == 0 and not self._ends:
                self._clear()
            elif self._acknowledged_to >= max(self._compact_at, self.bytes):
                self._compact()
            else:
                self._write(f"a {self._acknowledged_to} {self._acknowledged_to % 97:02}\n")
        except OSError:
            # A full disk. After a crash these reports would be sent again, which changes nothing.
            pass

    def close(self) -> None:
        os.close(self._file)
        if self._end == 0:
            os.unlink(self._path)
        os.close(self._lock)

    def leave(self) -> None:
        """In a forked process: the file is its parent's, which keeps the lock."""
        os.close(self._file)
        os.close(self._lock)

    @property
    def _aside_path(self) -> str:
        return f"{self._path}.damaged"

    def _recover(self) -> None:
        """Finds what an earlier process left. A position that cannot be right is ignored: what was acknowledged is sent again."""
        for line, end in self._lines(0):
            self._end = end
            found = _ACKNOWLEDGED.fullmatch(line)
            position = 0 if found is None else int(found[1])
            is_checked = found is not None and (found[2] is None or int(found[2]) == position % 97)
            if is_checked and self._acknowledged_to < position < end and os.pread(self._file, 1, position - 1) == b"\n":
                self._acknowledged_to = position
        self._recover_last_line()
        self._read_at = self._acknowledged_to
        self.unread = sum(1 for line, _ in self._lines(self._read_at) if _has_report(line))
        if self.unread == 0:
            self._clear()

    def _recover_last_line(self) -> None:
        """
        The last line has no end when the process was killed while it wrote it. The call that made the report had not
        returned then, so what there is of it is no loss; any other part of a line is damage. What a power cut leaves may
        look the same.
        """
        rest = b""
        while True:
            chunk = os.pread(self._file, _CHUNK_BYTES, self._end + len(rest))
            if not chunk:
                break
            rest += chunk
        if not rest:
            return
        if _parse(rest) is not None:
            os.pwrite(self._file, b"\n", self._end + len(rest))
            self._end += len(rest) + 1
            return
        is_interrupted = (self._end + len(rest)) % _PAGE_BYTES == 0 and _REPORT_BEGUN.fullmatch(rest) is not None
        if not is_interrupted and _POSITION.fullmatch(rest) is None:
            self._keep(rest)
        os.ftruncate(self._file, self._end)

    def _set_aside(self, line: bytes, position: int) -> None:
        """Moves a damaged line to another file."""
        if self._keep(line):
            os.pwrite(self._file, b" " * len(line), position)

    def _keep(self, line: bytes) -> bool:
        self._damaged += 1
        try:
            file = os.open(self._aside_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                _write_all(file, line + b"\n", None)
            finally:
                os.close(file)
            return True
        except OSError as error:
            self._not_kept = error
            return False

    def _write(self, line: str) -> None:
        """Writes all of a line, or nothing."""
        data = line.encode()
        try:
            _write_all(self._file, data, self._end)
        except OSError:
            os.ftruncate(self._file, self._end)
            raise
        self._end += len(data)

    def _clear(self) -> None:
        os.ftruncate(self._file, 0)
        self._end = self._read_at = self._acknowledged_to = 0
        self._compact_at = _COMPACT_BYTES
        self._ends.clear()

    def _compact(self) -> None:
        """Replaces the file by one that has only the reports that are not acknowledged."""
        temporary = f"{self._path}.new"
        file = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            # Reports in memory that could not be stored have no line of their own: they end where the one before does.
            wanted = {*self._ends, self._read_at}
            moved = {self._acknowledged_to: 0}
            to = 0
            for line, end in self._lines(self._acknowledged_to):
                if _has_report(line):
                    _write_all(file, line + b"\n", to)
                    to += len(line) + 1
                if end in wanted:
                    moved[end] = to
            os.replace(temporary, self._path)
        except OSError:
            os.close(file)
            os.unlink(temporary)
            # Copying in vain at each acknowledgement would take long.
            self._compact_at = self._acknowledged_to + _COMPACT_BYTES
            raise
        os.close(self._file)
        self._ends = deque(moved[end] for end in self._ends)
        self._file, self._end, self._read_at, self._acknowledged_to = file, to, moved[self._read_at], 0
        self._compact_at = _COMPACT_BYTES

    def _lines(self, start: int) -> Iterator[Tuple[bytes, int]]:
        """The complete lines of the file from a position on, and where each ends."""
        # Joined once per line, because a line may be very long.
        pieces: List[bytes] = []
        length = 0
        at = start
        while True:
            chunk = os.pread(self._file, _CHUNK_BYTES, at + length)
            if not chunk:
                return
            pieces.append(chunk)
            length += len(chunk)
            if b"\n" not in chunk:
                continue
            *lines, rest = b"".join(pieces).split(b"\n")
            pieces, length = [rest], len(rest)
            for line in lines:
                at += len(line) + 1
                yield line, at


def _write_all(file: int, data: bytes, position: Optional[int]) -> None:
    written = 0
    while written < len(data):
        rest = data[written:]
        written += os.write(file, rest) if position is None else os.pwrite(file, rest, position + written)


def _has_report(line: bytes) -> bool:
    """Whether a line should be a report: it is no position, and not blank."""
    return _POSITION.fullmatch(line) is None and line.strip(b" ") != b""


def _parse(line: bytes) -> Optional[Report]:
    try:
        found = _REPORT.fullmatch(line.decode())
        if found is None:
            return None
        kind, members = _KINDS[found[1]], json.loads(found[3])
        return Report(kind, found[2], found[3], members["id"] if kind == TASK else None, members.get("parent_run_id"))
    except (ValueError, KeyError, RecursionError):
        return None
