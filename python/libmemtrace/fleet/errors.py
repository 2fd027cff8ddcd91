"""What ends the command: one line for people, and an exit status as memtrace's other commands have."""
import importlib
import sys
from typing import Any

USAGE, CANT_READ = 2, 3


class FleetError(Exception):
    def __init__(self, text: str, status: int = CANT_READ) -> None:
        super().__init__(text)
        self.status = status


def need(module: str, package: str, why: str) -> Any:
    """The module, or the command that brings it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise FleetError("%s needs %s: %s -m pip install '%s'" % (why, package.split("[")[0], sys.executable, package)) from None
