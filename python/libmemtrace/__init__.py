"""memtrace from Python: docs/python.md.

    import libmemtrace as memtrace

    memtrace.watch(model, optimizer)
    with memtrace.phase("train"):
        for n, batch in enumerate(loader):
            memtrace.step(n)

Where libmemtrace.so is not loaded all of it does nothing and says nothing.
"""
from typing import Any

from .marks import (  # noqa: F401
    holders,
    label,
    loaded,
    mark,
    phase,
    phase_begin,
    phase_end,
    start,
    step,
    stop,
    watch,
)
from .trace import directory  # noqa: F401

__all__ = ["directory", "label", "holders", "loaded", "mark", "phase", "phase_begin", "phase_end", "start", "step", "stop", "watch"]


def load_ipython_extension(shell: Any) -> None:
    """%load_ext libmemtrace"""
    from .notebook import Magics

    shell.register_magics(Magics)
