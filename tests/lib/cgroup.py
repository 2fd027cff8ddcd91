"""Memory cgroups for tests."""
import os
import time

import mt


class Cgroup:
    """A memory cgroup of our own with a limit, of either version; skips where we may not make one."""

    def __init__(self, limit):
        self.path, self.limit = None, limit
        for version, parent in ((1, "/sys/fs/cgroup/memory"), (2, "/sys/fs/cgroup")):
            mounted = os.path.exists(parent + ("/memory.usage_in_bytes" if version == 1 else "/cgroup.controllers"))
            path = "%s/memtrace-test-%d-%d" % (parent, os.getpid(), id(self))
            try:
                if mounted:
                    os.mkdir(path)
                    self.path, self.version = path, version
                    self.write("memory.limit_in_bytes" if version == 1 else "memory.max", limit)
                    return
            except OSError:
                self.remove()
        mt.skip("can't make a memory cgroup here")

    def write(self, name, value):
        with open(os.path.join(self.path, name), "w") as file:
            file.write(str(value))

    def read(self, name):
        with open(os.path.join(self.path, name)) as file:
            return file.read()

    def facts(self):
        """{anon, file, shmem, kernel, used: bytes} of what it has; file with shmem."""
        facts = {name: int(value) for name, value in map(str.split, self.read("memory.stat").splitlines())}
        if self.version == 1:
            return dict(anon=facts["rss"], file=facts["cache"], shmem=facts["shmem"], kernel=int(self.read("memory.kmem.usage_in_bytes")),
                        used=int(self.read("memory.usage_in_bytes")))
        return dict({name: facts[name] for name in ("anon", "file", "shmem", "kernel")}, used=int(self.read("memory.current")))

    def kills(self):
        """How many the kernel has killed in it for want of memory."""
        lines = self.read("memory.oom_control" if self.version == 1 else "memory.events").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))

    def command(self, words):
        """The command in the cgroup, and whoever starts it outside."""
        return ["/bin/sh", "-c", 'echo $$ > "$0"; exec "$@"', os.path.join(self.path, "cgroup.procs"), *words]

    def remove(self):
        for _ in range(50):
            try:
                if self.path and os.path.exists(self.path):
                    os.rmdir(self.path)
                return
            except OSError:
                time.sleep(0.1)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.remove()
