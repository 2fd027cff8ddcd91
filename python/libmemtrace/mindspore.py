"""For MindSpore's Model:

    from libmemtrace.mindspore import MemtraceCallback
    model.train(epochs, data, callbacks=[MemtraceCallback()], dataset_sink_mode=False)

Steps (with dataset_sink_mode, of which a callback sees an epoch at a time: epochs), the phases train and evaluate, names of parameters,
and the page as memtrace.html in the working directory. `numbers` are those for a logger, of which MindSpore has none.
"""
from typing import Any, Dict

from mindspore.train import Callback

from . import marks
from .training import Training


class MemtraceCallback(Callback):
    def __init__(self, metrics: bool = True, page: bool = True, watch: bool = True, folder: str = ".") -> None:
        super().__init__()
        self.training = Training(metrics, page, watch=False)
        self.names, self.folder = watch, folder
        self.numbers: Dict[str, float] = {}

    def on_train_begin(self, run_context: Any) -> None:
        self.training.begin()
        self.training.enter("train")
        network = run_context.original_args().train_network
        for parameter in network.get_parameters() if self.names and marks.loaded() else ():
            marks.label(parameter, "parameters:" + parameter.name)

    def on_train_step_begin(self, run_context: Any) -> None:
        self.training.step(run_context.original_args().cur_step_num)

    def on_train_step_end(self, run_context: Any) -> None:
        self.numbers = self.training.metrics() or self.numbers

    def on_eval_begin(self, run_context: Any) -> None:
        self.training.enter("evaluate")

    def on_eval_end(self, run_context: Any) -> None:
        self.training.leave("evaluate")

    def on_train_end(self, run_context: Any) -> None:
        self.training.end()
        self.training.page(self.folder)
