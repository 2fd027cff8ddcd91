"""Says what a program can know of its objects, before a snapshot and after it: they must be equal."""
import asyncio
import collections
import ctypes
import gc
import os
import sys
import threading
import weakref

snapshot = ctypes.CDLL(os.environ["HOLDERS"]).memtrace_holders if "HOLDERS" in os.environ else lambda name: None


class Thing:
    pass


def look(things, weak):
    """Counts of references; the collector's counters, thresholds, objects; weak references; of what types there are how many."""
    gc.collect()
    types = collections.Counter(type(o).__name__ for o in gc.get_objects())
    return "\n".join(map(repr, ([sys.getrefcount(t) for t in things], gc.get_count(), gc.get_threshold(), gc.isenabled(), gc.get_freeze_count(),
                                 [w() is not None for w in weak], sorted(types.items()), [gc.is_tracked(t) for t in things],
                                 sorted(n for n in os.listdir("/proc/self/fd")), threading.active_count())))


def wait():
    for _ in range(10):
        pass


async def ask():
    asyncio.get_running_loop().slow_callback_duration = 60
    snapshot(b"asyncio")
    await asyncio.sleep(0)
    wait()


def main():
    things = [Thing(), [1, 2], (1, [2]), {"a": Thing()}, "text" * 3, 10**20, lambda: things, frozenset([Thing()])]
    weak = [weakref.ref(things[0]), weakref.ref(Thing())]
    stop, threads = threading.Event(), []
    for _ in range(3):
        threads.append(threading.Thread(target=stop.wait))
        threads[-1].start()
    gc.collect()
    gc.disable()
    before = look(things, weak)
    again = look(things, weak)
    counts, stats = gc.get_count(), repr(gc.get_stats())
    snapshot(b"same")
    wait()
    counted, stats = gc.get_count(), stats == repr(gc.get_stats())
    after = look(things, weak)
    for a, b, c in zip(before.split("\n"), again.split("\n"), after.split("\n")):
        print("equal" if b == c else "%s became %s, as %s" % (b, c, a))
    print("counters", counted[0] - counts[0] <= 3, counted[1:] == counts[1:], stats)
    gc.enable()
    asyncio.run(ask())
    stop.set()
    for t in threads:
        t.join()
    try:
        pid = os.fork()
        if pid == 0:
            snapshot(b"child")
            wait()
            os._exit(3)
        print("child", os.waitpid(pid, 0)[1])
        os.wait()
    except ChildProcessError:
        print("no child is left")


if len(sys.argv) > 1:
    with open(sys.argv[1], "w", encoding="ascii") as file:
        file.write(str(os.getpid()))
main()
