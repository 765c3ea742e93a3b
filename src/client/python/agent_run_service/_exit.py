"""Lets clients send what is left before the process ends."""

import atexit
import os
import signal
import sys
import threading
from typing import Any, Callable, List

_finishers: List[Callable[[], Any]] = []
_is_listening = False


def on_exit(finish: Callable[[], Any]) -> Callable[[], None]:
    """Calls `finish` at exit and on SIGTERM. Returns a function that undoes it."""
    _finishers.append(finish)
    _listen()
    return lambda: _finishers.remove(finish) if finish in _finishers else None


def _listen() -> None:
    global _is_listening
    if _is_listening:
        return
    _is_listening = True
    # SIGINT needs nothing: it becomes KeyboardInterrupt, and the interpreter exits.
    atexit.register(_finish_all)
    _listen_in_child()
    is_main = threading.current_thread() is threading.main_thread()
    # A program that handles the signal itself decides when it ends.
    if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _finish_and_end)


def _listen_in_child() -> None:
    """Processes of multiprocessing end without atexit."""
    process = sys.modules.get("multiprocessing.process")
    if process is None or process.parent_process() is None:
        return
    from multiprocessing import util

    util.Finalize(None, _finish_all, exitpriority=10)


def _after_fork() -> None:
    util = sys.modules.get("multiprocessing.util")
    if util is not None and _is_listening:
        # Later: a process of multiprocessing first forgets what its parent registered.
        util.register_after_fork(_listen_in_child, lambda listen: listen())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _finish_all() -> None:
    for finish in list(_finishers):
        finish()


def _finish_and_end(number: int, _frame: Any) -> None:
    """The signal terminates the process as usual; a second one terminates it immediately."""
    signal.signal(number, signal.SIG_DFL)
    _finish_all()
    os.kill(os.getpid(), number)
