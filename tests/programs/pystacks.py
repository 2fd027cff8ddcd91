"""Allocates in every way that Python code can be reached, and says which frames were there.

    pystacks.py LOG     runs all of them; lines "BYTES JSON-LIST-OF-[NAME, FILE, LINE]" go to LOG.PID, innermost first
    pystacks.py --list  names them

take() allocates with malloc itself, never to be freed, and asks sys._getframe() on the same line."""
import asyncio
import atexit
import contextlib
import ctypes
import functools
import gc
import importlib.util
import json
import os
import re
import sys
import tempfile
import threading
import types
import weakref

LIBC = ctypes.CDLL(None)
LIBC.malloc.restype = ctypes.c_void_p
LIBC.malloc.argtypes = [ctypes.c_size_t]
BYTES = 1000003
STATE = {"log": None, "pid": 0}


def describe(frame):
    stack = []
    while frame:
        code = frame.f_code
        stack.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return stack


def open_log(state=STATE, getpid=os.getpid, os_open=os.open, flags=os.O_WRONLY | os.O_CREAT | os.O_APPEND):
    state["log"], state["pid"] = os_open("%s.%d" % (state["path"], getpid()), flags, 0o600), getpid()


def say(stack, bytes_taken, dumps=json.dumps, state=STATE, getpid=os.getpid, write=os.write, open_log=open_log):
    if state["pid"] != getpid():
        open_log()
    write(state["log"], ("%d %s\n" % (bytes_taken, dumps(stack))).encode())


def take(n=BYTES, malloc=LIBC.malloc, describe=describe, say=say, getframe=sys._getframe):
    malloc(n), say(describe(getframe()), n)
    return 1


def plain():
    take()
    take(); take()


def deeper():
    def one():
        def two():
            take()
        two()
    one()
    plain()


def recursion(n=60):
    if n:
        recursion(n - 1)
        if n % 20 == 0:
            take()
    else:
        take()


def generators():
    def numbers(n):
        for i in range(n):
            take()
            yield i

    def outer(n):
        yield from numbers(n)
        take()

    def closing():
        try:
            yield 1
            yield 2
        finally:
            take()

    def catching():
        try:
            yield 1
        except KeyError:
            take()
            yield 2

    for _ in numbers(2):
        take()
    list(outer(2))
    sum(i for i in outer(2))
    it = outer(1)
    next(it)
    c = closing()
    next(c)
    c.close()
    c = catching()
    next(c)
    c.throw(KeyError())
    c = closing()
    next(c)
    del c


def coroutines():
    async def leaf(n):
        take()
        await asyncio.sleep(0)
        take()
        return n

    async def stream(n):
        for i in range(n):
            await leaf(i)
            yield i

    async def main():
        await asyncio.gather(leaf(1), leaf(2))
        async for _ in stream(2):
            take()
        return [i async for i in stream(2)]

    asyncio.run(main())


def comprehensions():
    [take() for _ in range(2)]
    {take() for _ in range(2)}
    {i: take() for i in range(2)}
    any(take() == 2 for _ in range(2))
    [[take() for _ in range(2)] for _ in range(2)]


def decorators():
    def twice(f):
        @functools.wraps(f)
        def wrapper(*args, **kw):
            take()
            return f(*args, **kw)
        return wrapper

    @twice
    @twice
    def decorated(a, *, b=1):
        take()

    @functools.lru_cache(None)
    def cached(a):
        take()

    decorated(1, b=2)
    cached(1)
    functools.partial(decorated, 1)()
    (lambda: take())()
    (lambda *a: [take() for _ in a])(1, 2)


def classes():
    class Meta(type):
        def __new__(cls, name, bases, space):
            take()
            return super().__new__(cls, name, bases, space)

        def __call__(cls, *args):
            take()
            return super().__call__(*args)

    class Thing(metaclass=Meta):
        take()

        def __init__(self, n):
            take()

        def __lt__(self, other):
            return take() == 2

        def __add__(self, other):
            take()
            return self

        def __getattr__(self, name):
            take()
            return 1

        def __enter__(self):
            take()

        def __exit__(self, *a):
            take()

        def __iter__(self):
            take()
            return iter((1, 2))

        def __len__(self):
            take()
            return 1

        def __hash__(self):
            take()
            return 1

        @property
        def length(self):
            take()
            return 1

        @classmethod
        def make(cls):
            return cls(1)

    a, b = Thing(1), Thing.make()
    sorted([a, b])
    a + b
    a.nothing
    a.length
    len(a)
    {a: 1}
    [*a]
    x, y = a
    with a:
        take()


def constructors():
    """From 3.13 on the interpreter specializes such a call after some, and puts a frame of its own between the two."""
    class Base:
        def __init__(self):
            take()

    class Derived(Base):
        def __init__(self, n):
            super().__init__()
            if n:
                Derived(n - 1)
            take()

    for _ in range(40):
        Derived(2)
    [Base() for _ in range(40)]


def evaluated():
    exec("take()\ntake()\n")
    eval("take()")
    eval("[take() for i in range(2)]")
    exec(compile("def f():\n\n    take()\nf()\n", "<made up>", "exec"), {"take": take})
    exec(compile("\n" * 3000 + "take()", "<far down>", "exec"))
    eval(compile("(1,\n\n 2,\n take(),\n 3)", "<lines>", "eval"))
    exec(compile("take()", "/tmp/\u00e4\u20ac\U0001f600.py", "exec"))
    exec(compile("def \u00e9t\u00e9():\n  take()\n\u00e9t\u00e9()", "/tmp/latin.py", "exec"))


def reuse():
    """The same addresses again and again, with other names, files and lines."""
    for i in range(40):
        exec(compile("take()", "<again %02d>" % i, "exec"))
    for i in range(40):
        exec(compile("\n" * i + "take()", "<lines>", "exec"))
    for i in range(40):
        space = {"take": take}
        exec("def f%02d():\n    take()\n" % i, space)
        space["f%02d" % i]()
        del space
    for i in range(40):
        code = (lambda: take()).__code__
        types.FunctionType(code.replace(co_name="g%02d" % i, **named("g%02d" % i)), globals())()
        del code


def named(name):
    return {"co_qualname": name} if hasattr(take.__code__, "co_qualname") else {}


def callbacks():
    sorted([2, 1, 3], key=lambda v: take())
    list(map(lambda v: take(), [1, 2]))
    list(filter(lambda v: take(), [1, 2]))
    functools.reduce(lambda a, b: take(), [1, 2, 3])
    re.sub("a", lambda m: "b" * take(), "aaa")
    max([1, 2], key=functools.cmp_to_key(lambda a, b: take()))
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda a, b: take())
    LIBC.qsort((ctypes.c_int * 4)(4, 3, 2, 1), 4, 4, compare)
    json.loads('{"a": 1}', object_hook=lambda o: take())


def exceptions():
    def fails():
        try:
            raise ValueError
        finally:
            take()

    try:
        fails()
    except ValueError:
        take()
    else:
        take()
    with contextlib.suppress(KeyError):
        try:
            {}[1]
        except IndexError:
            take()
        finally:
            take()

    @contextlib.contextmanager
    def manager():
        take()
        try:
            yield
        except OSError:
            take()
    with manager():
        raise OSError


class Watched(set):
    pass


class Dies:
    def __del__(self):
        take()


def deaths():
    def leaves_one():
        local = Dies()
        return 1

    def ends_with_one(v):
        local = Dies()

    def takes_and_ends_with_one(v):
        local = Dies()
        take()
        LIBC.malloc(16)  # the last capture with this frame; the next one is of __del__, when it has just been left
        return v

    def argument(it):
        return 1

    leaves_one()
    list(map(lambda v: leaves_one(), [1, 2]))
    list(map(ends_with_one, [1, 2]))
    sorted([1, 2], key=takes_and_ends_with_one)
    argument(Dies())
    thing = Dies()
    thing = None
    weakref.finalize(Watched(), take)
    ring = [Dies()]
    ring.append(ring)
    del ring
    gc.collect()
    list(leaves_one() for _ in range(2))


def threads():
    def work(n):
        for _ in range(n):
            take()
        recursion(5)

    running = [threading.Thread(target=work, args=(2,)) for _ in range(4)]
    for t in running:
        t.start()
    for t in running:
        t.join()


def modules():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "imported.py")
        with open(path, "w") as file:
            file.write("import __main__\n\n__main__.take()\ndef f():\n    __main__.take()\nf()\n")
        spec = importlib.util.spec_from_file_location("imported", path)
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def forks():
    plain()
    child = os.fork()
    if child == 0:
        plain()
        evaluated()
        recursion(3)
        os._exit(0)
    os.waitpid(child, 0)
    evaluated()


def deep():
    """More frames than are kept."""
    sys.setrecursionlimit(2000)
    recursion(1000)


def tracing():
    """With a trace function frames and lines are handled elsewhere in the interpreter."""
    def traced():
        take()
        for _ in range(2):
            take()

    sys.settrace(lambda frame, event, arg: None)
    try:
        traced()
    finally:
        sys.settrace(None)


def greenlets():
    """Stacks that change places: each greenlet has frames of its own, and shares the thread's stack. Not in CASES: it is a package."""
    import greenlet

    def work(n, other=None):
        take()
        if n:
            work(n - 1, other)
            list(map(lambda _: take(), [1]))
        if other:
            other.switch()
        take()

    def forth(n):
        for k in range(n):
            take()
            greenlet.getcurrent().parent.switch(k)
            work(k)

    first, second = greenlet.greenlet(forth), greenlet.greenlet(forth)
    third = greenlet.greenlet(work)
    for _ in range(8):
        first.switch(7)
        second.switch(7)
        take()
    third.switch(20, greenlet.getcurrent())
    take()
    third.switch()


def at_exit():
    atexit.register(take)
    atexit.register(plain)


CASES = [plain, deeper, recursion, generators, coroutines, comprehensions, decorators, classes, constructors, evaluated, reuse, callbacks,
         exceptions, deaths, threads, modules, forks, tracing, at_exit]


def main():
    if sys.argv[1] == "--list":
        print(" ".join(f.__name__ for f in CASES))
        return
    STATE["path"] = sys.argv[1]
    open_log()
    for name in sys.argv[2:] or [f.__name__ for f in CASES]:
        globals()[name]()


main()
