"""Memory cgroups for tests."""
import os
import time

import mt


class Cgroup:
    """A memory cgroup of our own with a limit, of either version; skips where we may not make one."""

    def __init__(self, limit):
        self.path = None
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
