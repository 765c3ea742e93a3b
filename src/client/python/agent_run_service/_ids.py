import itertools
import os
import re
import time
from typing import Callable


def uuidv7() -> str:
    """A UUID of version 7: they sort by time."""
    # A clock before 1970 is negative.
    value = (time.time_ns() // 1_000_000 & (1 << 48) - 1) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def is_uuid(text: str) -> bool:
    return re.fullmatch("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text) is not None


def event_ids() -> Callable[[], str]:
    """Ids of events: random digits that this process shares with no other, and a number."""
    prefix = os.urandom(8).hex()
    numbers = itertools.count()
    return lambda: f"{prefix}-{next(numbers):x}"
