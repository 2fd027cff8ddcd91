"""What the callbacks of training frameworks have in common: steps, phases, names, numbers for a logger, and the page at the end."""
import os
import sys
from typing import Any, Dict, Optional

from . import marks, trace


class Training:
    """One training loop. Each method does nothing where nothing is recorded."""

    def __init__(self, metrics: bool = True, page: bool = True, watch: bool = True) -> None:
        self.wants_metrics, self.wants_page, self.wants_names = metrics, page, watch
        self._live: Optional[trace.Live] = None
        self._watch: Any = None
        self._phases: Dict[str, int] = {}

    def begin(self, model: Any = None, optimizer: Any = None) -> None:
        if not marks.loaded():
            return
        if self.wants_names and hasattr(model, "named_parameters"):
            if self._watch is not None:  # the last training failed, so nobody called end()
                self._watch.remove()
            self._watch = marks.watch(model, getattr(optimizer, "optimizer", optimizer))
        if self.wants_metrics and self._live is None:
            self._live = trace.Live()

    def enter(self, name: str) -> None:
        """The phase begins, unless it has."""
        if not self._phases.get(name):
            self._phases[name] = 1
            marks.phase_begin(name)

    def leave(self, name: str) -> None:
        if self._phases.pop(name, None):
            marks.phase_end(name)

    def step(self, number: int) -> None:
        marks.step(number)

    def metrics(self) -> Dict[str, float]:
        return self._live.metrics() if self._live is not None else {}

    def end(self) -> None:
        for name in reversed(list(self._phases)):
            self.leave(name)
        if self._watch is not None:
            self._watch.remove()
            self._watch = None
        if self._live is not None:
            self._live.close()
            self._live = None

    def page(self, folder: Optional[str]) -> Optional[str]:
        """memtrace.html in the folder, which is made; None where nothing is recorded or no page is wanted."""
        if not self.wants_page or not folder or not marks.loaded():
            return None
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError:
            return None
        return trace.page(os.path.join(folder, "memtrace.html"))


def to_running_loggers(path: str) -> None:
    """The page as an artifact of the run of MLflow or Weights & Biases that goes on in this process, if there is one."""
    mlflow, wandb = sys.modules.get("mlflow"), sys.modules.get("wandb")
    try:
        if mlflow is not None and mlflow.active_run() is not None:
            mlflow.log_artifact(path)
        if wandb is not None and wandb.run is not None:
            wandb.run.log_artifact(path, name="memtrace", type="report")
    except Exception:  # whatever a tracking server says, the training goes on
        pass
