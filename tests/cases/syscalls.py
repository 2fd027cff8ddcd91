#!/usr/bin/env python3
"""Each system call that the shim makes fails once, and from then on: the program runs as without the shim."""
import collections
import concurrent.futures
import os
import re
import shutil
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

COUNT = 10000
BUSY = [mt.program("busy"), str(COUNT), "100", "10"]
ALONE = os.path.join(mt.scratch("alone"), "libmemtrace.so")  # without a recorder beside it
CHILD = [mt.program("forks"), "fork"]
ERRORS = {"mmap": ["ENOMEM"], "munmap": ["ENOMEM"], "openat": ["EMFILE", "EACCES"], "mkdir": ["EACCES"], "pwrite64": ["ENOSPC", "EIO"],
          "fallocate": ["ENOSPC", "EPERM", "EOPNOTSUPP"], "madvise": ["EINVAL", "ENOMEM"]}
NEVER = {"rt_sigprocmask", "getpid", "gettid", "getppid", "exit_group", "close", "write", "brk", "wait4"}  # can't fail, or aren't ours


class Traced:
    """A run of the command under strace and the shim."""

    def __init__(self, command, *options, shim=True):
        where = mt.scratch("traced")
        self.log, output = os.path.join(where, "log"), os.path.join(where, "t")
        self.trace = mt.Trace(output)
        preload = ["-E", "LD_PRELOAD=" + ALONE, "-E", "MEMTRACE_OUTPUT=" + output] if shim else []
        done = mt.execute([mt.need("strace"), "-ff", "-o", self.log, *options, *preload, *command], env=mt.clean_env())
        self.result = done.status, done.out, done.err

    def calls(self):
        """(name, its number among those of that name in its process, text without addresses) in order, the command's own first. A log for each
        process: in one for all a call is in two parts when another's comes between them."""
        logs = []
        for name in os.listdir(os.path.dirname(self.log)):
            if name.startswith("log."):
                with open(os.path.join(os.path.dirname(self.log), name)) as file:
                    logs.append(file.read())
        for log in sorted(logs, key=lambda text: "execve(" not in text):
            numbers = collections.Counter()
            for text, name in re.findall(r"^((\w+)\(.*)", log, re.M):
                numbers[name] += 1
                yield name, numbers[name], re.sub(r"0x[0-9a-f]{5,}", "", re.sub(r"\) += .*", "", text))

    def remove(self):
        shutil.rmtree(os.path.dirname(self.log))


def ours(command):
    """What the shim asks for: all from its first call on, but what the program asks for itself."""
    plain = Traced(command, shim=False)
    if "strace: " in plain.result[2]:
        mt.skip("strace can't trace here: %s" % plain.result[2])
    own = {text for _, _, text in plain.calls()}
    calls = list(Traced(command).calls())
    start = [name for name, _, _ in calls].index("getpid")
    loader = {name: number for name, number, _ in calls[:start]}
    return plain.result, sorted({(name, number) for name, number, text in calls[start:]
                                 if name not in NEVER and text not in own and number > loader.get(name, 0)})


def failures(command):
    """Runs of the command, one for each failure."""
    want, calls = ours(command)
    mt.check({"openat", "mmap", "fallocate", "pwrite64", "madvise"} <= {name for name, _ in calls}, "the shim's calls are %s" % calls)
    # mmap for ever is the program's end, too
    first = {name: min(n for other, n in calls if other == name) for name, _ in calls if name != "mmap"}
    options = [("-e", "inject=%s:error=%s:when=%d%s" % (name, error, number, more)) for name, number in calls
               for error in ERRORS.get(name, ["EPERM"]) for more in (["", "+"] if number == first.get(name) else [""])]

    def run(option):
        done = Traced(command, *option)
        mt.equal(done.result, want, " ".join(option))
        return done
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        yield from pool.map(run, options)


def case_of_a_program():
    for done in failures(BUSY):
        if done.trace.files(".info"):
            done.trace.settle()
            known = done.trace.tool("check")
            mt.check(known.status in (0, 1), "check: %s" % known)
        done.remove()


def case_of_a_forked_child():
    for done in failures(CHILD):
        done.remove()


shutil.copy(mt.SHIM, ALONE)
mt.main()
