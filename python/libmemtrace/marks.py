"""Tell memtrace what a Python program is doing, so that its reports can use your words.

    import memtrace

    memtrace.watch(model, optimizer)            # names parameters, gradients and optimizer state (PyTorch)
    with memtrace.phase("train"):
        for n, batch in enumerate(loader):
            memtrace.step(n)
            ...

Where libmemtrace.so is not loaded all of it does nothing, so it may stay in the program. One file, no dependencies, Python 3.8
or later: copy it next to the program, or add the directory it was installed to to PYTHONPATH. Where memtrace was installed by pip it
is there already, as libmemtrace: `import libmemtrace as memtrace`.
"""
import contextlib
import ctypes
from typing import Any, Callable, Dict, List, Optional, Tuple

__all__ = ["loaded", "mark", "step", "phase", "phase_begin", "phase_end", "label", "holders", "start", "stop", "watch"]

_STATE_CHECK = 100  # steps between looks for optimizer state that has moved


def _load() -> Optional[Dict[str, Callable[..., None]]]:
    """The functions of a preloaded libmemtrace.so by name, or None. PyDLL: they are too short to let go of the GIL."""
    try:
        library = ctypes.PyDLL(None)
        return {
            "mark": _declare(library.memtrace_mark, ctypes.c_char_p),
            "step": _declare(library.memtrace_step, ctypes.c_ulong),
            "phase_begin": _declare(library.memtrace_phase_begin, ctypes.c_char_p),
            "phase_end": _declare(library.memtrace_phase_end, ctypes.c_char_p),
            "label": _declare(library.memtrace_label, ctypes.c_void_p, ctypes.c_char_p),
            "holders": _declare(library.memtrace_holders, ctypes.c_char_p),
            "start": _declare(library.memtrace_start),
            "stop": _declare(library.memtrace_stop),
        }
    except (AttributeError, OSError, TypeError):
        return None


def _declare(function: Any, *arguments: Any) -> Callable[..., None]:
    function.argtypes = arguments
    function.restype = None
    return function  # type: ignore[no-any-return]


_functions = _load()


def loaded() -> bool:
    """Is this process being traced (or paused)?"""
    return _functions is not None


def _text(name: Any) -> Optional[bytes]:
    return name if name is None or isinstance(name, bytes) else str(name).encode("utf-8", "surrogateescape")


def mark(name: str) -> None:
    """Something happened just now."""
    if _functions:
        _functions["mark"](_text(name))


def holders(name: str) -> None:
    """Where MEMTRACE_HOLDERS=1: note which object keeps the memory just now (memtrace holders). It takes about 0.2 s for a million objects."""
    if _functions:
        _functions["holders"](_text(name))


def step(number: int) -> None:
    """Step `number` of the training loop begins; it lasts until the next one."""
    if _functions:
        _functions["step"](number)


def phase_begin(name: str) -> None:
    """A phase begins. Phases of one thread nest."""
    if _functions:
        _functions["phase_begin"](_text(name))


def phase_end(name: Optional[str] = None) -> None:
    """The innermost phase (of that name) ends."""
    if _functions:
        _functions["phase_end"](_text(name))


class phase(contextlib.ContextDecorator):
    """`with memtrace.phase("evaluate"):`, or `@memtrace.phase("evaluate")` before a function."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> "phase":
        phase_begin(self.name)
        return self

    def __exit__(self, *exception: Any) -> None:
        phase_end(self.name)


def start() -> None:
    """Recording begins or goes on (MEMTRACE_PAUSED=1, stop())."""
    if _functions:
        _functions["start"]()


def stop() -> None:
    """Recording pauses."""
    if _functions:
        _functions["stop"]()


def _address(thing: Any) -> int:
    """Of a number's, a tensor's, an array's or a buffer's memory; 0 if it has none."""
    if isinstance(thing, int):
        return thing
    try:
        if hasattr(thing, "data_ptr"):
            return int(thing.data_ptr())
        if hasattr(thing, "__array_interface__"):
            return int(thing.__array_interface__["data"][0])
        if hasattr(thing, "__cuda_array_interface__"):
            return int(thing.__cuda_array_interface__["data"][0])
        return ctypes.addressof(ctypes.c_char.from_buffer(thing))
    except (AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError):
        return 0  # no memory of its own: a meta tensor, a read-only buffer, an empty one


def label(thing: Any, text: str) -> None:
    """The memory of a tensor, an array, a buffer or at an address is called `text` until it is freed. "KIND:NAME" also says
    what it is: parameters, gradients, optimizer, activations, kv_cache, workspace, comm, input_pipeline, checkpoint, caches."""
    if _functions:
        address = _address(thing)
        if address:
            _functions["label"](address, _text(text))


class _Nothing:
    """What watch() returns where nothing is traced."""

    def remove(self) -> None:
        pass


class _Watch:
    def __init__(self, functions: Dict[str, Callable[..., None]], model: Any, optimizer: Any) -> None:
        self.handles: List[Any] = []
        self.names: Dict[int, str] = {}  # of parameters, by id
        self.texts: Dict[int, Optional[bytes]] = {}  # of gradients, by id of the parameter
        self.state: Dict[Tuple[int, str], int] = {}  # (id of the parameter, key) -> address that was labelled
        self.steps = 0
        self.hooked = True    # gradients are labelled as they are made
        self.label = functions["label"]
        for name, parameter in model.named_parameters():
            self._meet(name, parameter)
        for name, tensor in model.named_buffers():
            label(tensor, "parameters:" + name)
        if optimizer is not None:
            self._attend(optimizer)

    def _meet(self, name: str, parameter: Any) -> None:
        label(parameter, "parameters:" + name)
        self.names[id(parameter)] = name
        self.texts[id(parameter)] = _text("gradients:" + name)
        if not parameter.requires_grad:
            return
        if parameter.grad is not None:
            self._gradient(parameter)
        hook = getattr(parameter, "register_post_accumulate_grad_hook", None)
        if hook is not None and parameter.is_leaf:
            self.handles.append(hook(self._gradient))
        else:
            self.hooked = False

    def _gradient(self, parameter: Any) -> None:
        """After each backward: with zero_grad(set_to_none=True) it is a new block, perhaps where the old one was."""
        gradient = parameter.grad
        if gradient is not None:
            address = _address(gradient)
            if address:
                self.label(address, self.texts[id(parameter)])

    def _attend(self, optimizer: Any) -> None:
        # register_step_*_hook came with PyTorch 2.0; before, only the parameters are named
        before = getattr(optimizer, "register_step_pre_hook", None)
        after = getattr(optimizer, "register_step_post_hook", None)
        if before is not None and not self.hooked:
            self.handles.append(before(self._before_step))
        if after is not None:
            self.handles.append(after(self._after_step))
        self._label_state(optimizer)

    def _before_step(self, optimizer: Any, *unused: Any) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if id(parameter) in self.texts:
                    self._gradient(parameter)

    def _after_step(self, optimizer: Any, *unused: Any) -> None:
        """State is made in the first step and then stays; now and then it is looked whether it has."""
        self.steps += 1
        if self.steps <= 2 or self.steps % _STATE_CHECK == 0:
            self._label_state(optimizer)

    def _label_state(self, optimizer: Any) -> None:
        for parameter, state in optimizer.state.items():
            for key, value in state.items() if isinstance(state, dict) else ():
                address = _address(value) if hasattr(value, "data_ptr") else 0
                if address and self.state.get((id(parameter), key)) != address:
                    self.state[id(parameter), key] = address
                    name = self.names.get(id(parameter), "?")
                    self.label(address, _text("optimizer:%s %s" % (key, name)))

    def remove(self) -> None:
        """Stops watching."""
        for handle in self.handles:
            handle.remove()
        self.handles = []


def watch(model: Any, optimizer: Any = None) -> Any:
    """Names the parameters of a PyTorch model, their gradients as they are made, and the optimizer's state, all by the names of
    model.named_parameters(). Returns an object with remove(); costs about 2 us per parameter and backward."""
    return _Watch(_functions, model, optimizer) if _functions else _Nothing()
