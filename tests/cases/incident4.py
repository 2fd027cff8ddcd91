#!/usr/bin/env python3
"""Incident 4: host RAM nearly full, by PyArrow's pool, DataLoader's prefetch and what allocators keep; and its healthy twin."""
# serial: what the kernel says of memory is compared with what the recorder sampled at that time
# timeout: 400
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import audit
import audit_host
import gpu
import mt
import screen
from cgroup import Cgroup

MIB = 1 << 20
LIMIT = 960 * MIB  # little more than it needs
ROOM = 1152 * MIB  # so much that it is never nine tenths full: a verdict's screen also says what it rules out, with figures of other commands
SLACK = 6 * MIB  # between a sample and what the program reads a second later
SAMPLE = 3 * MIB  # of a batch, which a worker hands over in one file
STILL_NS = 2400000000    # so long it surely stood still
SCENARIO = os.path.join(gpu.SCENARIOS, "incident4.py")
LEDGER = ("live", "kept", "pinned", "mapped_files", "shared", "shm_files", "other_processes", "page_cache", "kernel", "free", "unexplained")


def group_or_none(limit):
    try:
        return Cgroup(limit)
    except mt.Skip:
        return None


def run_in(group, before, command, output, env):
    """A command in the cgroup if there is one, BEFORE it what starts it from outside; its trace, and what it says of itself."""
    env = dict(env, **gpu.environment(**gpu.settings_of(SCENARIO)))
    try:
        done = mt.execute([*before, *(group.command(command) if group else command)], env=env, timeout=120)
    finally:
        if group:
            group.remove()
    done.trace, done.account, done.limit = mt.Trace(output), gpu.account(done.out), group and group.limit
    return done


@mt.once
def run(*arguments, limit=LIMIT):
    """In a cgroup of its own where that can be made, else with the machine for its limit."""
    output = os.path.join(mt.scratch("trace"), "t")
    group = Cgroup(limit) if "--endless" in arguments else group_or_none(limit)
    done = run_in(group, [mt.MEMTRACE, "run", "-o", output, "--"], [gpu.python(), SCENARIO, *arguments], output, mt.clean_env())
    mt.check(done.status == 0 or limit != LIMIT, "status of %s" % done)
    return done


def near(got, want, slack, what):
    mt.between(want - slack, got, want + slack, what)


def case_ledger_adds_up_to_the_limit():
    done = run()
    system = done.trace.report["system"]
    ledger = system["ledger"]
    mt.equal(sum(ledger[k] for k in LEDGER), ledger["total_bytes"], "sum of the ledger")
    if done.limit:
        mt.equal((ledger["of"], ledger["total_bytes"], system["limit_bytes"]), ("cgroup", LIMIT, LIMIT))
        near(ledger["unexplained"], 0, LIMIT // 50, "unexplained")
        mt.between(0, ledger["free"], LIMIT // 4, "free")
    mt.equal(system["oom_kills"], 0)


def case_ledger_holds_what_the_program_has():
    """What it knows to have is live; what it has in memory beyond that is kept, or was never asked for."""
    done = run()
    account, ledger = done.account, done.trace.report["system"]["ledger"]
    mine = sum(account[k] for k in ("arrow_bytes", "model_bytes", "optimizer_bytes", "accumulated_bytes", "spike_bytes"))
    private = sum_of(account, "Pss_Anon")
    mt.between(mine, ledger["live"], private, "live")


@mt.variants((), long=[("--healthy",)])
def case_live_is_as_exact_as_it_says(*arguments):
    """What of large mappings nobody touched is live, but in nobody's memory: the kernel is asked seldom, so it says how far it may be off."""
    done = run(*arguments)
    ledger = done.trace.report["system"]["ledger"]
    near(ledger["not_resident"], done.account["untouched_bytes"][0], ledger["live_error"] + SLACK, "untouched")
    mt.between(0, ledger["live_error"], LIMIT // 5, "live_error")


def sum_of(account, field):
    return sum(p[field] for p in account["resident"].values())


def case_processes_are_as_the_program_saw_them():
    """Each worker has a row, with the figures that the program read itself."""
    done = run()
    workers = [p for p in done.trace.processes if p["pid"] in done.account["workers"]]
    mt.equal(len(workers), 2)
    for process in workers + [done.trace.process(pid=done.account["pid"], name="python")]:
        truth = done.account["resident"][str(process["pid"])]
        mt.check(process["rss_peak_bytes"] >= truth["VmRSS"] * 0.98, "rss_peak_bytes %s of %s" % (process["rss_peak_bytes"], truth))
        for field, key in (("rss", "VmRSS"), ("rss_anon", "RssAnon"), ("swap", "VmSwap")):
            values = around(done, process["pid"], field)
            mt.between(min(values) - 3 * MIB, truth[key], max(values) + 3 * MIB, "%s of %d" % (field, process["pid"]))


def around(done, pid, field):
    """What was sampled while it stood still, and just after."""
    rows = [json.loads(line) for line in done.trace.tool("dump", "--samples", "--json").out.splitlines()]
    rows = [r["fields"][field] for r in rows if r["record"] == "sample" and r["kind"] == "process" and r["pid"] == pid and r["traced"]
            and field in r["fields"] and -4.5e9 < r["mono_ns"] - done.account["still_ns"] < 1.2e9]
    mt.check(len(rows) >= 2, "%d samples of %d" % (len(rows), pid))
    return rows


def case_the_screen_has_the_table():
    text = run().trace.tool("report").out
    for word in ("HOST at", "live in this run", "mapped files"):  # other rows may be too small for one of their own
        mt.check(word in text, "%r is not in %s" % (word, text))


# ---- beside the program's own books


@mt.once
def booked(*arguments):
    """A run with books of its own: each allocation that the shim forwarded (tests/programs/libbooks.c), and what the kernel says meanwhile."""
    group, output = group_or_none(ROOM), os.path.join(mt.scratch("trace"), "t")

    def start(own, preload):
        env = mt.shim_env(output, preload, MEMTRACE_PAUSED="1", **own)
        preloaded = ["env", "LD_PRELOAD=" + env.pop("LD_PRELOAD")]  # not by what enters the cgroup
        return run_in(group, [], [*preloaded, gpu.python(), SCENARIO, *arguments], output, env)

    done = audit.known(start, " ".join(["python", "incident4.py", *arguments]), group)
    mt.equal(done.status, 0, "%r: status" % done)
    done.log = []
    return done


class HostAudit(audit.Audit):
    """Of a run without devices."""

    def everywhere(self):
        for claims in (self.title, self.recorded, self.names, self.host_memory, self.pinned, self.process_table, self.for_what, self.filling, self.machine,
                       self.owners, self.mappings, self.smaller, self.headline):
            claims()

    def peak_time(self, sums):
        """Workers map what the parent unmaps at the same time: sums that are nearly as high are reached again and again."""
        return self.time(self.done.began, self.done.ended) if sums == self.done.books.maps else super().peak_time(sums)

    def last_call_ns(self):
        return max(p.begin_ns for p in self.done.books.process.values())

    def pinned(self):
        size, blocks = self.done.account["pinned_bytes"], self.done.account["pinned_blocks"]
        self.claim(r"^  pinned +(FIGURE) +(TIME) +(FIGURE) +([\d,]+) +([\d,]+) +([\d,]+) +([\d,]+) +-$", size,
                   self.time(self.done.began, self.done.ended), size, blocks, blocks, 0, 0, what="pinned", section="HOST MEMORY")
        self.claim(r"^ +(FIGURE) +([\d.]+) %  (\d+) blocks ", size, 100, blocks, what="who pinned", section="MOST PINNED", count=(0, 1))

    def for_what(self):
        """All of it is what was on the heap at its peak, but for categories of less than a thousandth."""
        peak, parts = self.done.books.host.peak_bytes, self.each(r"(?:(?<=  )|(?<=, ))[a-z][a-z ]* (FIGURE)(?=,|$)", "FOR WHAT|ALIVE THEN")
        figures = [screen.Figure(found[1]) for _, found in parts]
        mt.between(0.99 * peak - sum(f.half for f in figures), sum(f.value for f in figures), peak + sum(f.half for f in figures), "categories in all")
        for line, found in parts:
            self.take(line, found, 1, (0, peak), "a category")
        for line, found in self.each(r"(?:anonymous|files|memfd and shm|shared|address space only) (FIGURE)(?=,|$)", "HOST MEMORY"):
            self.take(line, found, 1, (0, self.done.books.maps.peak_bytes), "a class of mappings")

    def filling(self):
        """What can't give way, at least as much as when it stood still."""
        still_ns = self.done.account["still_ns"]
        held = sum(self.done.watch.of_cgroup(name, still_ns - STILL_NS, still_ns - 10 ** 8)[0] for name in ("anon", "shmem", "kernel")) if self.done.limit else 0
        self.claim(r"^(?:FILLING UP|NEARLY FULL) .* was ([\d.]+) % full at its peak \((FIGURE) of (FIGURE)(?: at (TIME))?\)",
                   (100 * (held - SLACK) / ROOM, 100), (held - SLACK, ROOM), ROOM, self.time(self.done.began, self.done.ended), what="filling up", count=(0, 1))

    def machine(self):
        """What the program knows of the rows, beside what the kernel says of them."""
        super().machine()
        handed = self.done.account["prefetched_bytes"]
        self.claim(r"^  made in /dev/shm: ([\d,]+) files?, (FIGURE), by incident4.py:112 main in (\d+) processes$", handed // SAMPLE, handed,
                   str(len(self.done.account["workers"])), what="made in /dev/shm", count=(0, 1))
        if not self.done.limit:
            return
        done, ledger, rows = self.done, self.report["system"]["ledger"], self.host()
        at_ns = self.origin + int(ledger["at_s"] * 1e9)
        span = at_ns - audit_host.SAMPLED_NS, at_ns + audit_host.SAMPLED_NS
        written = sum(done.watch.process(pid, "Private_Dirty", span[0] - 10 ** 10, span[1])[1] for pid in done.account["workers"])
        mt.between(0, rows["copied after fork"].value if "copied after fork" in rows else 0, written + SLACK, "copied after fork")
        if done.account["still_ns"] - STILL_NS < at_ns < done.account["still_ns"]:
            live = [sum(n) - done.account["untouched_bytes"][1] for n in zip((0, 0), *(done.books.live(pid, *span) for pid in done.watch.of_process))]
            error = ledger["live_error"] + SLACK
            mt.between(live[0] - error, rows["live in this run"].value, live[1] + error, "live in this run")


@mt.variants((), long=[("--healthy",)])
def case_the_books(*arguments):
    """What each process allocated, as the library behind the shim counted it; the JSON to the byte, the screen as it rounds."""
    done = booked(*arguments)
    report, kept = done.trace.report, done.books
    figures = ("allocations", "frees", "failed", "live_bytes", "live_blocks")
    for process in report["processes"]:
        own, books = process["host"], kept.process[process["pid"]].heap
        if process["ppid"] in kept.process and own["frees"] == books.frees + 1:  # a worker leaves by _exit() while its feeder thread frees
            late = books.live_bytes - own["live_bytes"]
            mt.between(0, late, MIB, "bytes of the last free of %d" % process["pid"])
            kept.free_late(process["pid"], late)
        for kind, sums in (("host", kept.process[process["pid"]].heap), ("map", kept.process[process["pid"]].map)):
            shown, wanted = [process[kind][f] for f in figures], [getattr(sums, f) for f in figures]
            mt.equal(shown, wanted, "%s of %d" % (kind, process["pid"]))
            mt.between(sums.temporary - audit_host.TEMPORARY_SLACK, process[kind]["temporary"], sums.temporary + audit_host.TEMPORARY_SLACK,
                       "temporary blocks of %d" % process["pid"])
            mt.between(sums.peak_bytes - audit_host.PEAK_SLACK, process[kind]["peak_bytes"], sums.peak_bytes + audit_host.PEAK_SLACK, "peak of %d" % process["pid"])
    HostAudit(done).finish()


@mt.long
def case_the_healthy_twin_needs_less():
    sick, well = run(), run("--healthy")
    before, after = (d.trace.report["system"]["ledger"] for d in (sick, well))
    less = sick.account["arrow_bytes"] - well.account["arrow_bytes"]
    mt.check(less >= 100 * MIB, "the twins differ by %d bytes" % less)
    # each at its own fullest moment: accumulated batches (36 MiB at most) or not, the twin's perhaps before it had a model (96 MiB)
    error = before["live_error"] + after["live_error"]
    mt.between(less - 40 * MIB - error, before["live"] - after["live"], less + 140 * MIB + error, "what is live less")
    mt.equal(sum(after[k] for k in LEDGER), after["total_bytes"], "sum of the ledger")


@mt.long
def case_the_healthy_twin_has_no_verdict():
    kinds = [v["kind"] for v in run("--healthy").trace.report["verdicts"]]
    mt.check("host_pressure" not in kinds and "limit" not in kinds, "the healthy twin has verdicts %s" % kinds)


@mt.long
def case_killed_at_a_lower_limit():
    """The same in a cgroup that is too small in the end: the kernel kills it, and the report says who, why, and what was where."""
    done = run("--endless", limit=640 * MIB)
    report = done.trace.report
    killed = [p for p in report["processes"] if p["exit"]["oom_killed"] != "no"]
    mt.check(killed, "nobody was killed: %s" % [p["exit"] for p in report["processes"]])
    mt.check({"limit", "host_pressure"} & {v["kind"] for v in report["verdicts"]}, "the verdicts are %s" % report["verdicts"])
    ledger = report["system"]["ledger"]
    mt.equal(sum(ledger[k] for k in LEDGER), 640 * MIB, "sum of the ledger")
    mt.check(ledger["live"] > 200 * MIB, "live is %d" % ledger["live"])


mt.main()
