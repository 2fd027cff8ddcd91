"""For the Trainer of Hugging Face:

    from libmemtrace.transformers import MemtraceCallback
    MemtraceCallback().attach(trainer)           # or Trainer(callbacks=[MemtraceCallback()])

Steps, the phases train and evaluate (also of predict()), names of parameters, gradients and optimizer state, numbers beside the loss, and the page as
OUTPUT_DIR/memtrace.html and as an artifact of MLflow or Weights & Biases.

The Trainer hands its numbers to loggers before it asks callbacks that were given to it. attach() puts this one first, so that its numbers
get into them, too; otherwise they are in the Trainer's own log (state.log_history) and on the screen alone.
"""
from typing import Any

from transformers import TrainerCallback

from .training import Training, to_running_loggers


class MemtraceCallback(TrainerCallback):
    def __init__(self, metrics: bool = True, page: bool = True, watch: bool = True) -> None:
        self.training = Training(metrics, page, watch)

    def attach(self, trainer: Any) -> "MemtraceCallback":
        """Makes it the first callback of a Trainer."""
        trainer.callback_handler.callbacks.insert(0, self)
        return self

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None, **more: Any) -> None:
        self.training.begin(model, optimizer)
        self.training.enter("train")

    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self.training.leave("evaluate")
        self.training.step(state.global_step)

    def on_prediction_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Nothing says that an evaluation begins; this is its first batch."""
        self.training.enter("evaluate")

    def on_evaluate(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self.training.leave("evaluate")

    def on_predict(self, args: Any, state: Any, control: Any, metrics: Any = None, **more: Any) -> None:
        self.training.leave("evaluate")

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        numbers = self.training.metrics()
        if logs is not None and numbers:
            logs.update(numbers)
            if state.log_history:
                state.log_history[-1].update(numbers)

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self.training.end()
        path = self.training.page(args.output_dir) if state.is_world_process_zero else None
        if path:
            to_running_loggers(path)
