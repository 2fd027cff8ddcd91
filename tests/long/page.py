#!/usr/bin/env python3
"""Pages of what people look at: the five incidents, the demo, 64 processes, 10^8 events. Figures are those of the other commands, nothing is cut,
loading and a brush are quick, the page is small; mutants open without a complaint. Pictures of each are left in build/tests/pages, to be looked at."""
# timeout: 7000
# serial
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fuzz"))
import browser
import gpu
import mt
import mutants
import page_checks
from cgroup import Cgroup

LIMIT = 1 << 30
MOST = 5 << 20
PICTURES = os.path.join(mt.BUILD, "tests/pages")


def incident4():
    script = os.path.join(gpu.SCENARIOS, "incident4.py")
    with Cgroup(LIMIT) as group:
        done = gpu.run(group.command([gpu.python(), script, "--fill", str(LIMIT * 96 // 100)]), env={"MEMTRACE_PAUSED": "1"}, **gpu.settings_of(script))
        done.trace.report  # its recorder is in the group, too
    return done


def events(count):
    """Two threads that replace random ones of 4,096 blocks, through up to 16 frames."""
    churn = os.path.join(mt.BUILD, "tests/bench/churn")
    mt.equal(mt.execute(["make", "-C", mt.TOP, "B=" + os.path.relpath(mt.BUILD, mt.TOP), os.path.relpath(churn, mt.TOP)]).status, 0, "make churn")
    return mt.shimmed([churn, "2", str(count // 4), "16"], timeout=1200)


PROGRAMS = {
    "incident1": lambda: gpu.scenario("incident1", timeout=600), "incident2": lambda: gpu.scenario("incident2", timeout=600),
    "incident3": lambda: gpu.scenario("incident3", timeout=600), "incident4": incident4, "incident5": lambda: gpu.scenario("incident5", 30, timeout=600),
    "demo": lambda: mt.shimmed([mt.python(), os.path.join(mt.TOP, "examples/train.py")], timeout=600),
    "processes": lambda: mt.shimmed([mt.program("children"), "64", "64", "20000"], timeout=600),
    "events": lambda: events(100_000_000),
}
each = mt.variants(*((name,) for name in PROGRAMS))


@mt.once
def recorded(name):
    """A trace and its page."""
    trace = PROGRAMS[name]().trace.settle()
    path = os.path.join(mt.scratch("page"), name + ".html")
    done = mt.execute([mt.MEMTRACE, "html", "-q", "-o", path, trace.path], timeout=900)
    mt.equal((done.status, done.out), (0, path + "\n"), "memtrace html: %s" % done)
    return trace, path


@each
def case_figures_are_the_reports(name):
    page_checks.same_figures(*recorded(name))


@each
def case_ranges_add_up(name):
    page_checks.same_ranges(recorded(name)[1])


@each
def case_moments_are_peaks(name):
    """Of the memory that it opens with: three moments, the peak, the failure."""
    trace, page = recorded(name)
    (track, device), asked = browser.ask(page, "const t = memtrace.track(); return [t.name, t.device ?? (t.kind === 'heap' ? 'host' : t.kind)]"), browser.ask(page, page_checks.MOMENTS)
    moments = [("%.9f" % time, "{ at: %d, high: false }" % window) for window, time in asked["times"]] + [("peak", page_checks.HIGHEST)]
    for at, window in moments + ([("oom", "{ at: %d, high: false }" % asked["oom"])] if asked["oom"] is not None else []):
        page_checks.same_tree(trace, page, track, device, at, window, **({"rows": "5000", "joined": 0.05} if name == "demo" else {}))


@each
def case_reads_without_scripts(name):
    page_checks.reads_without_scripts(*recorded(name))


@each
def case_is_small_and_quick(name):
    """Time is that of the page's main thread: others use the machine, too."""
    _, page = recorded(name)
    mt.between(1, os.path.getsize(page), MOST, "bytes")
    took = browser.costs(page)
    print("# %s: %d bytes, %s" % (name, os.path.getsize(page), {key: round(value) for key, value in took.items()}))
    mt.between(0, took["load_cpu_ms"], 1000, "milliseconds until it is drawn")
    mt.between(0, took["cpu_ms"], 50, "milliseconds from a brush to the picture")


@each
def case_fits(name):
    """Each tab in a usual and in a narrow window, light and dark."""
    os.makedirs(PICTURES, exist_ok=True)
    _, page = recorded(name)
    for width, height, theme in ((1280, 800, "light"), (1280, 800, "dark"), (900, 800, "light")):
        for tab in page_checks.TABS if theme == "light" and width == 1280 else page_checks.TABS[:1]:
            page_checks.nothing_is_cut(page, tab, width, height, theme=theme, shot=os.path.join(PICTURES, "%s-%s-%d-%s.png" % (name, tab, width, theme)))


def case_64_processes_are_listed():
    """All of them, with the figures of the report; the sum of what they had is the memory that is drawn."""
    trace, page = recorded("processes")
    mt.equal(len(trace.report["processes"]), 65, "processes")
    rows = browser.ask(page, """
        memtrace.set({ tab: "processes" });
        await new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)));
        return [...document.querySelector("table[aria-label=Processes]").querySelectorAll("tbody tr")].map(tr => [...tr.children].map(td => td.textContent));""")
    mt.equal(sorted(int(row[0]) for row in rows), sorted(p["pid"] for p in trace.report["processes"]), "pids")
    mt.equal(browser.ask(page, "return memtrace.data.tracks.find(t => t.kind === 'heap').peak"), trace.report["host"]["peak_bytes"], "all at once")


# 10,000 ranks, of which each is a program of its own that a shell starts.
RANKS = "for ((i=0;i<10000;i++)); do RANK=$i LOCAL_RANK=$((i%8)) WORLD_SIZE=10000 /bin/true & ((i%40==39)) && wait; done; wait"


@mt.variants(("20000_processes", mt.program("children"), "20000", "50", "40"), ("10000_ranks", "/bin/bash", "-c", RANKS))
def case_many(name, *command):
    """More than a page lists: it is as small and as quick, and says who is missing."""
    trace = mt.shimmed(command, env={"MEMTRACE_LIMIT": "16G"}, timeout=1200).trace.settle(1800)
    page = browser.page(trace.path)
    took = browser.costs(page)
    print("# %s: %d processes, %d bytes, %s" % (name, len(trace.report["processes"]), os.path.getsize(page), {key: round(value) for key, value in took.items()}))
    mt.between(1, os.path.getsize(page), MOST, "bytes")
    mt.between(0, took["load_cpu_ms"], 1000, "milliseconds until it is drawn")
    mt.between(0, took["cpu_ms"], 50, "milliseconds from a brush to the picture")
    page_checks.lists_the_largest(trace, page, 2000)
    os.makedirs(PICTURES, exist_ok=True)
    for theme in ("light", "dark"):
        page_checks.nothing_is_cut(page, "processes", theme=theme, shot=os.path.join(PICTURES, "%s-processes-1280-%s.png" % (name, theme)))


def case_mutants_open():
    """Damaged traces, read with --force, whatever was done to them."""
    whole = 0
    for number in range(1, 61):
        folder = mt.scratch("mutant")
        mutant = mutants.Mutant(number)
        try:
            whole += page_checks.opens(mutant.write(folder), "--force")
        except mt.Fail as error:
            mt.fail("mutant %d (%s): %s" % (number, mutant.what, error))
    mt.between(20, whole, 60, "pages that were made")


mt.main()
