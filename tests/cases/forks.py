#!/usr/bin/env python3
"""Process trees: each way to make a child, what children inherit, and that nobody is forgotten."""
import json
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

FORKS = mt.program("forks")


def parent_and_child(trace):
    mt.equal(len(trace.processes), 2, "processes")
    parent = [p for p in trace.processes if not p["host"]["inherited_blocks"]]
    child = [p for p in trace.processes if p["host"]["inherited_blocks"]]
    mt.equal((len(parent), len(child)), (1, 1), "parents and children")
    mt.equal(child[0]["ppid"], parent[0]["pid"])
    return parent[0], child[0]


@mt.variants("fork", "_Fork", "clone")
def case_forked(how):
    parent, child = parent_and_child(mt.same([FORKS, how]))
    mt.equal((parent["host"]["live_blocks"], parent["host"]["live_bytes"]), (1000, 100000))
    mt.equal((child["host"]["inherited_blocks"], child["host"]["inherited_bytes"]), (750, 75000))
    mt.equal((child["host"]["frees"], child["host"]["allocations"]), (250, 10))
    mt.equal((child["host"]["live_blocks"], child["host"]["live_bytes"]), (10, 300))
    mt.equal((child["exit"]["kind"], child["exit"]["code"]), ("exit", 5))


def case_inherited_blocks_are_summed_once():
    trace = mt.same([FORKS, "fork"])
    mt.equal((trace.host["live_bytes"], trace.host["live_blocks"]), (100300, 1010))
    mt.equal(mt.blocks_of(trace.sites(), "parent_blocks"), (100000, 1000))
    mt.equal(mt.blocks_of(trace.sites(), "child_work"), (300, 10))


def case_files_of_a_child():
    """A file that the parent has mapped as well is named in the child's records too."""
    program = """import mmap, os
file = os.open("/bin/sh", os.O_RDONLY)
parents = mmap.mmap(file, 4096, prot=mmap.PROT_READ)
pid = os.fork()
if not pid:
    childs = mmap.mmap(file, 8192, prot=mmap.PROT_READ)
    os._exit(0)
os.waitpid(pid, 0)
"""
    done = mt.same([mt.python(), "-c", program]).tool("dump", "--json")
    rows = [json.loads(line) for line in done.out.splitlines()]
    files = {(row["process"], row["id"]): row["path"] for row in rows if row["record"] == "file"}
    maps = [(row["size"], files.get((row["process"], row["file"]))) for row in rows if row["record"] == "map"]
    path = os.path.realpath("/bin/sh")
    mt.check((4096, path) in maps and (8192, path) in maps, "mapped files are %s" % maps)


def case_child_that_shares_storage():
    """A child in its parent's memory has its parent's thread-local storage: what it maps is not recorded, and said to be lost."""
    trace = mt.same([mt.program("sharer")], intact=False)
    mt.equal(len(trace.processes), 1, "processes")
    mt.equal(trace.losses(), {"events": 4 * 2 * 40000, "events_why": ["shared"]})


@mt.variants("spawn", "vforkexec")
def case_spawned(how):
    trace = mt.same([FORKS, how])
    mt.equal(len(trace.processes), 2, "processes")
    parent = [p for p in trace.processes if p["host"]["allocations"] >= 1000]
    child = [p for p in trace.processes if p["host"]["allocations"] == 0]
    mt.equal((len(parent), len(child)), (1, 1), "parents and children")
    mt.equal((child[0]["ppid"], child[0]["exit"]["kind"], child[0]["exit"]["code"]), (parent[0]["pid"], "exit", 0))


def case_vfork_without_exec():
    trace = mt.same([FORKS, "vfork"])
    mt.equal(len(trace.processes), 1, "processes")
    host = trace.host
    mt.equal((host["live_blocks"], host["live_bytes"]), (1000 - 250 + 10, 75300))


def case_fork_among_threads():
    trace = mt.same([FORKS, "threads"])
    mt.equal(len(trace.processes), 21, "processes")
    for child in sorted(trace.processes, key=lambda p: p["id"])[1:]:
        mt.equal((child["host"]["allocations"], child["host"]["frees"]), (1000, 1000), "of a child")
        # 1,000 blocks and what pthread_create holds; up to one call in flight in each of three threads
        mt.between(1000, child["host"]["inherited_blocks"], 1010, "inherited")


def case_freed_while_another_thread_forks():
    """fork() waits for the C library's locks after all handlers. What is freed meanwhile is not the child's, which gets its address again."""
    trace = mt.same([mt.program("fork_window"), "thread"])
    mt.equal(trace.report["losses"]["missed_frees"], 0, "the child got an address that it had already")
    mt.equal(sorted(p["host"]["inherited_blocks"] for p in trace.processes)[0], 0, "of the parent")


def case_chain_of_execs():
    trace = mt.same([FORKS, "chain", "20"])
    mt.equal(len(trace.processes), 21, "images")
    mt.equal(len({p["pid"] for p in trace.processes}), 1, "pids")
    mt.equal([p["exit"]["kind"] for p in sorted(trace.processes, key=lambda p: p["start_s"])], ["exec"] * 20 + ["exit"])
    twice = json.loads(mt.execute([mt.MEMTRACE, "diff", "--json", trace.path, trace.path]).out)  # clocks of young processes are asked for the time of now
    mt.equal([row["change_s"] for row in twice["totals"] if row["figure"] == "duration"], [0], "one duration, read twice")


def case_daemon():
    trace = mt.same([FORKS, "daemon"])
    mt.equal(len(trace.processes), 3, "processes")
    mt.equal(mt.blocks_of(trace.sites(), "child_work"), (300, 10))


@mt.variants("fork", "_Fork", "clone")
def case_between_two_forks(how):
    """A child that does nothing but fork: what its child has is what there was when it was made itself."""
    trace = mt.same([FORKS, "middle", how])
    mt.equal(len(trace.processes), 3, "processes")
    first, between, last = sorted(trace.processes, key=lambda p: p["start_s"])
    mt.equal((between["ppid"], last["ppid"]), (first["pid"], between["pid"]), "parents")
    mt.equal((first["host"]["live_blocks"], first["host"]["live_bytes"]), (600, 57000))
    mt.equal((between["host"]["inherited_blocks"], between["host"]["allocations"]), (1000, 0))
    mt.equal((last["host"]["inherited_blocks"], last["host"]["frees"]), (750, 250))


def case_system():
    trace = mt.same([FORKS, "system"])
    mt.equal(sorted(p["name"] for p in trace.processes), ["forks", "sh"])


def case_children_can_be_left_out():
    trace = mt.same([FORKS, "fork"], env={"MEMTRACE_CHILDREN": "0"})
    mt.equal(len(trace.processes), 1, "processes")
    trace = mt.same([FORKS, "system"], env={"MEMTRACE_CHILDREN": "0"})
    mt.equal([p["name"] for p in trace.processes], ["forks"])


def case_excluded_by_name():
    trace = mt.same(["sh", "-c", FORKS + " fork; ls /; true"], env={"MEMTRACE_EXCLUDE": "ls:fork?"})
    names = {p["name"] for p in trace.processes}
    mt.check("sh" in names and not {"ls", "forks"} & names, "recorded %s" % names)


mt.main()
