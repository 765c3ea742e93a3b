"""Client of the Agent Run Service: docs/client.md."""

from ._client import Client
from ._errors import NoResponseError, ReportError, ServiceError
from ._reporter import Stats
from ._run import Run, Task

__all__ = ["Client", "NoResponseError", "ReportError", "Run", "ServiceError", "Stats", "Task"]
