"""For Lightning:

    from libmemtrace.lightning import MemtraceCallback
    trainer = Trainer(callbacks=[MemtraceCallback()])

Steps, the phases train, validate, test and predict, a mark at each checkpoint, names of parameters, gradients and optimizer state, numbers
for each logger of the trainer, and the page: as an artifact of MLFlowLogger and WandbLogger, for others in their folder, else in default_root_dir.
"""
from typing import Any, Dict

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    from pytorch_lightning.callbacks import Callback

from . import marks
from .training import Training


class MemtraceCallback(Callback):
    def __init__(self, metrics: bool = True, page: bool = True, watch: bool = True) -> None:
        self.training = Training(metrics, page, watch)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self.training.begin(pl_module, trainer.optimizers[0] if trainer.optimizers else None)
        self.training.enter("train")

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self.training.step(trainer.global_step)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        every = trainer.log_every_n_steps
        numbers = self.training.metrics() if every and trainer.global_step % every == 0 else {}
        if numbers:
            for logger in trainer.loggers:
                logger.log_metrics(numbers, step=trainer.global_step)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self.training.enter("validate")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self.training.leave("validate")

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        self.training.enter("test")

    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        self.training.leave("test")

    def on_predict_start(self, trainer: Any, pl_module: Any) -> None:
        self.training.enter("predict")

    def on_predict_end(self, trainer: Any, pl_module: Any) -> None:
        self.training.leave("predict")

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Dict[str, Any]) -> None:
        """Its state has been collected, and is written next."""
        marks.mark("checkpoint")

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.training.end()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self.training.end()
        if trainer.is_global_zero:
            self._hand_over(trainer)

    def _hand_over(self, trainer: Any) -> None:
        folder = next((logger.log_dir for logger in trainer.loggers if getattr(logger, "log_dir", None)), trainer.default_root_dir)
        path = self.training.page(folder)
        for logger in trainer.loggers if path else ():
            try:
                if type(logger).__name__ == "MLFlowLogger":
                    logger.experiment.log_artifact(logger.run_id, path)
                elif type(logger).__name__ == "WandbLogger":
                    logger.experiment.log_artifact(path, name="memtrace", type="report")
            except Exception:  # whatever a tracking server says, the training goes on
                pass
