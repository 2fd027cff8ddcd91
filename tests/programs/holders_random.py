"""Builds the graph of tests/lib/holders_graph.py for a seed and asks for a snapshot: holders_random.py LIB SEED SHIM LIBHOLDS."""
import collections
import ctypes
import functools
import gc
import sys
import threading

sys.path.insert(0, sys.argv[1])
import holders_graph  # noqa: E402

gc.disable()
SEED = int(sys.argv[2])
snapshot = ctypes.CDLL(sys.argv[3]).memtrace_holders
cxx = ctypes.PyDLL(sys.argv[4])
cxx.hold_new.restype = ctypes.py_object
cxx.hold_add.argtypes, cxx.hold_add.restype = [ctypes.py_object] * 2, None


class Instance:
    pass


class Slots:
    __slots__ = ("payload", "first", "second", "more")


def enclose(payload, targets):
    return lambda: (payload, targets)


def suspend(payload, targets):
    yield
    yield payload, targets


class Wait:
    def __await__(self):
        yield


async def wait(payload, targets):
    await Wait()
    return payload, targets


def fail(payload, targets):
    raise RuntimeError


def failed(payload, targets):
    """An exception whose traceback keeps a frame; the innermost one, so that the caller's variables are not kept."""
    try:
        fail(payload, targets)
    except RuntimeError as e:
        return e.with_traceback(e.__traceback__.tb_next)


def build(kind, payload, targets):
    if kind in ("instance", "cycle"):
        o = Instance()
        o.payload = payload
        for i, t in enumerate(targets):
            setattr(o, "to%d" % i, t)
        return o
    if kind == "slots":
        o = Slots()
        o.payload, o.first, o.second, o.more = payload, targets[:1], targets[1:], []
        return o
    if kind == "closure":
        return enclose(payload, targets)
    if kind in ("generator", "coroutine"):
        o = suspend(payload, targets) if kind == "generator" else wait(payload, targets)
        o.send(None)
        return o
    if kind == "traceback":
        return failed(payload, targets)
    if kind == "c++":
        o = cxx.hold_new()
        for t in [payload, *targets]:
            cxx.hold_add(o, t)
        return o
    if kind == "partial":
        return functools.partial(print, payload, *targets)
    if kind == "dict":
        return dict(payload=payload, **{"to%d" % i: t for i, t in enumerate(targets)})
    return {"list": list, "tuple": tuple, "deque": collections.deque}[kind]([payload] + targets)


def refer(o, i, target):
    if isinstance(o, dict):
        o["back%d" % i] = target
    elif isinstance(o, Instance):
        setattr(o, "back%d" % i, target)
    elif isinstance(o, Slots):
        o.more.append(target)
    elif type(o).__name__ == "PyCapsule":
        cxx.hold_add(o, target)
    else:
        o.append(target)


def build_all():
    plan, roots = holders_graph.make(SEED)
    objects = []
    for kind, size, targets in plan:
        objects.append(build(kind, bytearray(size), [objects[t] for t in targets]))
    for i, (a, b) in enumerate(holders_graph.back_edges(SEED, plan)):
        refer(objects[a], i, objects[b])
    for a, (kind, _, _) in enumerate(plan):
        if kind == "cycle":
            objects[a].itself = objects[a]
    held = {name: [objects[i] for i in starts] for name, starts in roots.items()}
    objects.clear()  # a traceback's frame keeps its callers' variables, too
    return held


def in_thread(thread0, ready, finish):
    ready.set()
    finish.wait()
    return thread0


def main(held):
    for name in [n for n in held if n.startswith("g")]:
        globals()[name] = held.pop(name)
    local0, local1, local2 = (held.pop("local%d" % i, None) for i in range(3))
    ready, finish = threading.Event(), threading.Event()
    arguments = [held.pop("thread0", None), ready, finish]
    thread = threading.Thread(target=in_thread, args=arguments)
    del arguments
    thread.start()
    ready.wait()
    snapshot(b"random")
    for _ in range(3):
        pass
    finish.set()
    thread.join()
    return local0, local1, local2


main(build_all())
