import json
import re
import traceback
from typing import Any, Tuple

_MESSAGE_LENGTH_MAX = 10_000
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def encode(value: Any) -> str:
    """JSON in one line. Raises TypeError or ValueError for what JSON cannot express."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Lone surrogates have no UTF-8.
    return text if _is_unicode(text) else json.dumps(value, allow_nan=False, separators=(",", ":"))


def to_object(value: Any) -> Any:
    """What the service stores as an object: anything else becomes `{"value": …}`, nothing `{}`."""
    if value is None:
        return {}
    return value if isinstance(value, dict) else {"value": value}


def to_valid_object(value: Any) -> Any:
    """The same, but a value that JSON cannot express becomes an object that says so."""
    try:
        encode(value)
    except Exception as error:
        return {"invalid_json": describe_error(error)[0]}
    return to_object(value)


def describe_error(error: Any) -> Tuple[str, dict]:
    """The message and the details of an error, as a run or a task reports them."""
    name = type(error).__name__
    try:
        message = str(error) or name
    except Exception:
        message = name
    message = _UNSTORABLE.sub("\ufffd", message[:_MESSAGE_LENGTH_MAX])
    if not isinstance(error, BaseException):
        return message, {}
    try:
        stack = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    except Exception:
        stack = name
    return message, {"name": name, "stack": stack}


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
