"""Memory that is held in every way that there is, each of a size of its own. With an argument the twin: everything was
let go of. MB is the unit of sizes: the n-th way holds n + 1 thirds of a MiB, so that each is known by its bytes."""
import collections
import ctypes
import functools
import gc
import logging
import os
import queue
import sys
import threading
import weakref

UNIT = 345 * 1024
LET_GO = len(sys.argv) > 1
gc.disable()


def blob(n):
    return bytearray(UNIT * (n + 1))


class Plain:
    attached = None


class Slots:
    __slots__ = ("inside", "__weakref__")


global_list = [blob(0)]
global_dict = {"key": blob(1)}
instance = Plain()
instance.attribute = blob(2)
slots = Slots()
slots.inside = blob(3)
Plain.attached = blob(4)


def make_closure():
    captured = blob(5)
    return lambda: captured


closure = make_closure()


def with_default(x=blob(6)):
    return x


def make_generator():
    suspended = blob(7)
    yield 1
    yield suspended


generator = make_generator()
next(generator)


def fail():
    in_traceback = blob(8)
    raise ValueError(len(in_traceback))


try:
    fail()
except ValueError as e:
    error = e


class Handler(logging.Handler):
    pass


handler = Handler()
handler.records = blob(9)
logging.getLogger("held").addHandler(handler)


@functools.lru_cache(maxsize=None)
def cached(n):
    return blob(n)


cached(10)
weak_target = Plain()
weak_target.big = blob(11)
weak = weakref.ref(weak_target)
del weak_target  # gone: held by nothing


class Cycle:
    pass


cycle = Cycle()
cycle.me = cycle
cycle.big = blob(12)
del cycle  # waits for the collector
first_name = blob(13)
second_name = first_name
del first_name  # the other name still holds it
waiting = queue.Queue()
waiting.put(blob(14))
ready, finish = threading.Event(), threading.Event()


def work(fifo):
    in_thread = blob(15)
    ready.set()
    finish.wait()
    return in_thread, fifo


thread = threading.Thread(target=work, args=(waiting,))
nested = {"outer": [{"inner": (blob(16),)}]}
ring = collections.deque([blob(17)])


class Meta(type):
    kept = blob(18)


Derived = Meta("Derived", (), {"own": blob(19)})
partial = functools.partial(len, blob(20))
shared_a = [blob(21)]
shared_b = list(shared_a)
ordered = collections.OrderedDict(last=blob(22))
bound = Plain().__init__
method = Plain()
method.held_by_method = blob(23)
method = method.__repr__


async def coroutine():
    awaiting = blob(24)
    await Never()
    return awaiting


class Never:
    def __await__(self):
        yield


suspended_coroutine = coroutine()
suspended_coroutine.send(None)
weak_values = weakref.WeakValueDictionary()


class Head:
    def __init__(self, link):
        self.link = link
        self.part = bytearray(UNIT // 50)


chain = None
for i in range(50 * 26):  # 26 units in a list that is linked through objects: as the 25th way
    chain = Head(chain)


def in_frame():
    local = [blob(26)]
    thread.start()
    ready.wait()
    library = ctypes.CDLL(None)
    for name in ("memtrace_holders",):
        getattr(library, name, ctypes.CDLL(HOLDERS)[name])(b"battery")
    for i in range(3):
        pass
    return local


HOLDERS = os.environ["HOLDERS"]
if LET_GO:
    for name in ("global_list", "global_dict", "instance", "slots", "closure", "generator", "error", "handler", "second_name",
                 "nested", "ring", "Meta", "Derived", "partial", "shared_a", "shared_b", "ordered", "method",
                 "chain", "with_default"):
        del globals()[name]
    suspended_coroutine.close()
    Plain.attached = None
    logging.getLogger("held").handlers.clear()
    logging._handlers.clear()
    cached.cache_clear()
    waiting.get()
    gc.collect()
print("held" if not LET_GO else "let go", flush=True)
in_frame()
finish.set()
thread.join()
