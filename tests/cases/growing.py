#!/usr/bin/env python3
"""Growing, or filling? Pairs of programs: what fills and ends, or kept more in its warm-up only, is no leak; what grows by each unit of work, in one
block, in several processes, or for very long, is one. Report, leaks and live are of one opinion, and bytes and rates are the program's own. All
languages: tests/long/growing.py."""
# timeout: 300
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import agree
import gpu
import mt
import python as frames
from cgroup import Cgroup
from growing import SICK, limited, opinions_of, record
from trace import Trace

LONG = 6  # seconds of growth


@mt.once
def run(language, form, python=None):
    done = record(language, form, env={"LONG": str(LONG)}, python=python)
    done.account = gpu.account(done.out)
    return done


def leak_of(done):
    verdict, = [v for v in done.trace.report["verdicts"] if v["kind"] == "leak"]
    return verdict


def of_site(done):
    """What leaks says of the site that grew most."""
    return max((s for s in done.trace.sites("leaks") if s["outlook"] != "none"), key=lambda s: s["grown_bytes_all"])


@mt.variants(("c", "fill"), ("c", "map"), ("c", "works"), ("c", "warmup"), ("c", "keeps"), ("c", "block"), ("c", "shared"), ("c", "private"),
             ("c", "file"), ("c", "forks"), ("c", "stages"), ("c", "renews"), ("c", "turns"), ("c", "loads"), ("c", "waits"), ("c", "pairs"), ("c++", "fill"), ("c++", "block"),
             ("c++", "filled"), ("c++", "pushes"), ("python", "fill"),
             ("pools", "piles"), ("pools", "closes"), ("extension", "keeps"), ("extension", "frees"),
             ("python", "keeps"), ("python", "block"), ("c", "cleans"), ("c", "moves"), ("c", "drops"), ("python", "layers"),
             long=[("pools", "pooled"), ("python", "memo"), ("perl", "map"), ("python", "map"), ("python", "warmup"), ("python", "turns"), ("c", "epochs"), ("c", "starts"), ("python", "recalls"), ("python", "values"), ("perl", "fill")])
def case_one_opinion(language, form):
    mt.need(language if language == "perl" else "cc")
    opinions = opinions_of(run(language, form).trace)
    mt.equal(set(opinions.values()), {form in SICK}, "opinions %s" % opinions)


@mt.variants(("c", "keeps"), ("c", "block"), ("c", "stages"), ("c", "turns"), ("c", "waits"), ("extension", "keeps"), ("python", "keeps"), ("python", "turns"), ("c", "cleans"), ("python", "layers"),
             long=[("python", "memo")])
def case_figures(language, form):
    """Bytes within 2 %, the rate by time within 5 % of the program's own."""
    done = run(language, form)
    kept, seconds = done.account["kept_bytes"], done.account["seconds"]
    site = of_site(done)
    print("# %s %s: bytes %.4f, rate %.4f, verdict %.4f of its own" % (language, form, site["grown_bytes_all"] / kept,
                                                                    site["slope_bytes_per_s"] * seconds / kept, leak_of(done)["bytes"] / kept))
    if (language, form) != ("python", "keeps"):  # the interpreter has other stacks for the first 16 of 600 turns, which leaks tells apart
        mt.between(0.98 * kept, site["grown_bytes_all"], 1.02 * kept, "bytes that grew")
    mt.between(0.95 * kept / seconds, site["slope_bytes_per_s"], 1.05 * kept / seconds, "bytes a second")
    mt.between(0.98 * kept, leak_of(done)["bytes"], 1.02 * kept, "bytes of the verdict")


def case_in_bursts():
    """A vector is filled until it moves again: the rate is that of what is put into it."""
    done = run("c++", "block")
    rate = done.account["kept_bytes"] / done.account["seconds"]
    mt.between(0.95 * rate, of_site(done)["slope_bytes_per_s"], 1.05 * rate, "bytes a second that are put into the vector")


def case_moves():
    """What was mapped anew by another line is of the same site: all of its bytes, and their rate, in report, leaks and live."""
    done = run("c", "moves")
    kept, seconds = done.account["kept_bytes"], done.account["seconds"]
    site = max(done.trace.json("leaks", "--by", "site")["sites"], key=lambda s: s["grown_bytes_all"] or 0)
    said = re.search(r"one site on the host grows by ([\d.]+) MiB a second", done.trace.tool("live").out)
    mt.between(0.98 * kept, leak_of(done)["bytes"], 1.02 * kept, "bytes of the verdict")
    mt.between(0.98 * kept, site["grown_bytes_all"], 1.02 * kept, "bytes of the site")
    mt.between(0.95 * kept / seconds, site["slope_bytes_per_s"], 1.05 * kept / seconds, "bytes a second")
    mt.between(0.95 * kept / seconds, float(said.group(1)) * 1048576, 1.05 * kept / seconds, "bytes a second that live says")


def case_drops():
    """What only grew and was freed while the program went on is no growth."""
    mt.check("healthy: nothing goes on growing" in run("c", "drops").trace.tool("report").out, run("c", "drops").trace.tool("report"))
    mt.check("only grew" in run("c", "fill").trace.tool("report").out, run("c", "fill").trace.tool("report"))


def case_several_processes():
    """Four that leak at one line: all of them, and what they have together."""
    done = run("c", "forks")
    verdict, site, kept = leak_of(done), of_site(done), 4 * 60_000_000
    mt.between(0.98 * kept, verdict["bytes"], 1.02 * kept, "bytes of the verdict")
    mt.check("of each of 4 processes" in verdict["evidence"], verdict["evidence"])
    mt.equal(site["growing_processes"], 4, "processes")
    mt.check("each of 4 processes" in done.trace.tool("leaks").out, "leaks does not say how many")
    said = done.trace.tool("live").out.strip().splitlines()[-1]
    rate = re.search(r"host grows by ([\d.]+) KiB a step in 4 processes together", said)
    mt.check(rate, said)  # who follows a run does not know how long it will be: its stretches are coarser
    mt.between(0.97 * 390.6, float(rate[1]), 1.03 * 390.7, "KiB a step")


def case_extension():
    """Of what a C extension loses its own function and line are named beside the line of Python that called it; of Python's own blocks none."""
    verdict = leak_of(run("extension", "keeps"))
    mt.check("allocated, by extension.py:14 serve in libkeeper.c:10 make:" in verdict["evidence"], verdict["evidence"])
    mt.check("libkeeper.c:10 make" in verdict["advice"], verdict["advice"])
    mt.check("allocated, by grows.py:25 keep:" in leak_of(run("python", "keeps"))["evidence"], leak_of(run("python", "keeps"))["evidence"])
    trace = run("extension", "keeps").trace
    text, failed = trace.tool("leaks").out, trace.tool("leaks", "--fail-over", "1M/s").err
    for said in (text, failed):
        mt.check("serve  extension.py:14 in libkeeper.c:10 make" in said, said)
    mt.check(re.search(r"serve +extension.py:14\n +> make +libkeeper.c:10\n +< <module> +extension.py:", text), "leaks' table: %s" % text)
    mt.check(" > " not in run("python", "keeps").trace.tool("leaks").out, "of Python's own blocks")


def case_made_and_kept():
    """Who makes what stays is known, who keeps it is not: the line in the loop is not named, and nobody is said to keep."""
    verdict = leak_of(run("python", "layers"))
    mt.check(re.search(r"stays allocated, by grows.py:\d+ Net.forward.*: .* more each (step|second)", verdict["evidence"]), verdict["evidence"])
    mt.check("keep" not in verdict["evidence"] and "find what holds" in verdict["advice"], "%s" % verdict)


def case_processes_that_pile_up():
    """Where they are started, how many there are, and what they have together."""
    check_pile(run("pools", "piles"))
    for form in ("closes", "pooled"):
        mt.equal(run("pools", form).trace.json("leaks")["pile"], None, form)


@mt.long
def case_processes_that_pile_up_in_any_python():
    """From 3.13 on the interpreter runs Pool() in another way once it has done so a few times: the same place."""
    for _, python in frames.interpreters()[-2:]:
        check_pile(run("pools", "piles", python))


def check_pile(done):
    verdict, = [v for v in done.trace.report["verdicts"] if v["kind"] == "processes"]
    pile, kept, workers = done.trace.json("leaks")["pile"], done.account["kept_bytes"], done.account["workers"]
    mt.check("%d processes" % workers in verdict["evidence"] and "pools.py:30 Pool.__init__" in verdict["evidence"], verdict["evidence"])
    mt.between(0.98 * kept, verdict["bytes"], 1.05 * kept, "bytes of the verdict: tables, and what a worker needs itself")
    mt.equal((pile["processes"], pile["batches"], pile["bytes"]), (workers, 6, verdict["bytes"]), "leaks")


def check_forecasts(run_in, units):
    """Of a run under the limit that ends three fifths of the way to `units`, where it fails; and of one without it."""
    for within, ends in ((True, True), (False, False)):
        begun = run_in([mt.program("grows"), "keeps", str(3 * units // 5)], within)
        site = of_site(begun)
        mt.equal(begun.status, 0, "status")
        if ends:
            mt.between(0.9 * units, site["runs_out_at_step"], 1.1 * units, "the step that %d of them foretell" % (3 * units // 5))
        else:
            mt.check((site["runs_out_at_step"] or 1e9) > 10 * units, "without a limit: %s" % site["runs_out_at_step"])


@mt.variants("v", long=["d"])
def case_forecast_of_a_limit(option):
    """A run under ulimit -v, or -d, is told from three fifths of it when it ends; the one that went on names the limit that it met."""
    limit = "ulimit -%s 240000; " % option  # of which the ring, whose size depends on the machine, is a small part
    failed = limited([mt.program("grows"), "keeps", "100000"], limit)
    mt.equal(failed.status, 1, "status")
    verdicts = {v["kind"]: v for v in failed.trace.report["verdicts"]}
    mt.check("limit" in verdicts and "ulimit -" + option in verdicts["limit"]["evidence"], "%s" % verdicts)
    check_forecasts(lambda command, within: limited(command, limit if within else ""), gpu.account(failed.out)["units"])


def case_forecast_of_a_control_group():
    """The same of a control group's limit, which the kernel kills at: how far it came its trace knows. The recorder is outside of it."""
    def run_in(command, within=True):
        output = os.path.join(mt.scratch("trace"), "t")
        with Cgroup(160_000_000) as group:
            done = mt.execute([mt.MEMTRACE, "run", "-o", output, "--", *(group.command(command) if within else command)], timeout=100)
        done.trace = mt.Trace(output)
        return done

    failed = run_in([mt.program("grows"), "keeps", "100000"])
    mt.check(failed.status != 0, "status %s" % failed.status)
    limit, = [v for v in failed.trace.report["verdicts"] if v["kind"] == "limit"]
    mt.check("the cgroup may use 152.6 MiB" in limit["evidence"], limit["evidence"])
    check_forecasts(run_in, int(of_site(failed)["grown_bytes_all"]) // 100_000)


def case_waits():
    """Of a loop whose every tenth turn waits, which is most of its time: rates are by time, and so is the moment when memory ends."""
    done = run("c", "waits")
    rate = done.account["kept_bytes"] / done.account["seconds"]
    mt.between(0.95 * rate, of_site(done)["slope_bytes_per_s"], 1.05 * rate, "bytes a second")
    for limit, status in ((1.3 * rate, 0), (0.8 * rate, 1)):
        mt.equal(done.trace.tool("leaks", "--fail-over", "%d/s" % limit).status, status, "--fail-over %d/s" % limit)
    limit = "ulimit -v 240000; "
    failed = limited([mt.program("grows"), "waits", "100000"], limit)
    units = gpu.account(failed.out)["units"]
    begun = limited([mt.program("grows"), "waits", str(3 * units // 5)], limit)
    seconds = gpu.account(begun.out)["seconds"] / (3 * units // 5) * units  # at the pace of the run that forecasts
    said = re.search(r"memory ends at step .*, ([\d.]+) s", " ".join(begun.trace.tool("report", "--all").out.split()))
    mt.check(said, "no forecast")
    mt.between(0.9 * seconds, float(said.group(1)), 1.1 * seconds, "the second when memory ends")


def case_pairs():
    """Two lines that grow at the same pace: rates and bytes are of both."""
    done = run("c", "pairs")
    verdict, kept = leak_of(done), done.account["kept_bytes"]
    each, seconds = kept / done.account["units"], done.account["seconds"]
    mt.between(0.98 * kept, verdict["bytes"], 1.02 * kept, "bytes of the verdict")
    mt.check("a table, a cache" in verdict["advice"] and "loss" not in verdict["advice"], verdict["advice"])
    mt.check("195.3 KiB more each step" in verdict["evidence"] and each == 200000, verdict["evidence"])
    text = mt.execute([mt.MEMTRACE, "leaks", done.trace.path], env=mt.clean_env(COLUMNS="60")).out
    group = " ".join(text.partition("GROWTH")[2].partition("\n\n")[0].split())
    mt.check(re.search(r"195\.\d KiB \+/- .* a step: keep\S* \S+:\d+ and 1 more at the same pace heap of \d+ .*; linear, certainty high; \S+ blocks? more a step, \S+ KiB each", group),
             "of what decides something is cut: %s" % text)
    for limit, status in (("%d/step" % (1.1 * each), 0), ("%d/step" % (0.8 * each), 1), ("%d/s" % (1.1 * kept / seconds), 0), ("%d/s" % (0.8 * kept / seconds), 1)):
        mt.equal(done.trace.tool("leaks", "--fail-over", limit).status, status, "--fail-over " + limit)


@mt.variants((75, False), (95, True))
def case_little(units, leak):
    """Less than 8 MiB are too little for a verdict, of everybody; limits that a user gives hold all the same."""
    kept = mt.shimmed([mt.program("grows"), "keeps", str(units)]).trace.settle()
    opinions = opinions_of(kept)
    mt.check(opinions.pop("fail-over"), "--fail-over let it pass")
    mt.equal(set(opinions.values()), {leak}, "opinions %s" % opinions)
    mt.equal(", too little or uncertain for a verdict" in kept.tool("leaks").out, not leak, "leaks says that it is little")


@mt.variants(0.03, 0.3, 30)
def case_as_fast_or_slow(seconds):
    """The same events, however long they take, get the same answer: it fills, and nothing is freed. A rate a second is said where a second was seen."""
    made = Trace(os.path.join(mt.scratch("made"), "t"))
    p = made.process(100, ["fill"])
    fill = p.stack(("fill.py", "<module>", 3), ("fill.py", "fill", 10))
    for i in range(600):
        p.at(seconds * i / 600)
        p.malloc(100_000, fill)
    made.save()
    done = mt.Trace(made.path)
    fact, = done.report["facts"]
    mt.equal((fact["kind"], fact["bytes"], done.report["verdicts"]), ("grows", 60_000_000, []), "what is said of %g s" % seconds)
    site, = done.sites("leaks")
    mt.between(0.9 * seconds, site["grew_for_s"], seconds, "how long it grew")
    mt.equal((site["slope_bytes_per_s"] is None, "more each second" in fact["evidence"], " within %.2g s" % site["grew_for_s"] in fact["evidence"]),
             (seconds < 1, seconds >= 1, seconds < 1), "whether a rate is said: %s" % fact["evidence"])


@mt.variants(0.5, 20)
def case_beside_steps(seconds):
    """What grows behind the last marked step is not the steps': all say it by time, or, where there was no second of it, by how long it took."""
    made = Trace(os.path.join(mt.scratch("made"), "t"))
    p = made.process(100, ["late"])
    work, keep = p.stack(("late.py", "<module>", 3), ("late.py", "work", 10)), p.stack(("late.py", "<module>", 4), ("late.py", "keep", 20))
    for i in range(100):
        p.at(0.01 * i)
        p.step(i)
        p.mfree(p.malloc(400_000, work))
    for i in range(400):
        p.at(1.01 + seconds * i / 400)
        p.malloc(100_000, keep)
        p.mfree(p.malloc(300_000, work))
    made.save()
    done, pace = mt.Trace(made.path), r"[\d.]+ MiB in 0\.\d+ s" if seconds < 1 else r"[\d.]+ MiB a second"
    verdict, = done.report["verdicts"]
    mt.check(re.search(r" within 0\.\d+ s" if seconds < 1 else r"MiB more each second", verdict["evidence"]), verdict["evidence"])
    said = json.loads(done.tool("live", "--json").out.strip().splitlines()[-1])
    mt.check(re.match("host grows by %s, linear" % pace, said["growth"]), said["growth"])
    mt.equal((said["growth_bytes_per_step"], said["growth_bytes_per_s"] is None), (None, seconds < 1), "rates of live")
    shape = re.search(r"shape +linear: (\S+ \w+(?:/\w+| in \S+ \w+))", done.tool("report", "--all").out)
    mt.check(shape and ("/s" in shape[1] if seconds > 1 else " in 0." in shape[1]), "shape of the host: %s" % (shape and shape[1]))
    mt.check(re.search(pace.replace(" a ", " \\+/- .* a "), done.tool("leaks").out), done.tool("leaks"))
    agree.check_all(done.path, page=False)


def case_start_beside_steps():
    """A long start that keeps a little is most of the work: what the steps keep, which is nearly all, is told by the step all the same."""
    made = Trace(os.path.join(mt.scratch("made"), "t"))
    p = made.process(100, ["train"])
    load, work, keep = (p.stack(("train.py", "<module>", line), ("train.py", name, 10 * line)) for line, name in ((3, "load"), (4, "work"), (5, "keep")))
    for i in range(400):
        p.at(0.025 * i)
        p.mfree(p.malloc(400_000, work))
        if i % 10 == 0:
            p.malloc(20_000, load)
    for i in range(100):
        p.at(10.01 + 0.02 * i)
        p.step(i)
        p.malloc(100_000, keep)
        p.mfree(p.malloc(300_000, work))
    made.save()
    done = mt.Trace(made.path)
    verdict, = done.report["verdicts"]
    mt.check("train.py:50 keep" in verdict["evidence"] and " 97.7 KiB more each step, linear" in verdict["evidence"], verdict["evidence"])
    shape = re.search(r"shape +linear: ([\d.]+ KiB)/step now", done.tool("report", "--all").out)
    mt.check(shape and shape[1] == "97.7 KiB", "shape of the host: %s" % done.tool("report", "--all"))
    agree.check_all(done.path, page=False)


@mt.variants(False, True)
def case_small_objects_have_a_container(works):
    """The line that needs Python's next arena is often one that keeps nothing. The list that holds the objects has a block of its own: its line is told,
    in a verdict's advice and where nothing but arenas is seen, so that there is none."""
    path = os.path.join(mt.scratch("small"), "rows.py")
    with open(path, "w", encoding="utf-8") as f:
        f.write("""rows = []
def handle(i):
    words = [str(i + k) for k in range(50)]
    rows.append({"id": i, "name": words[0]})
    return len(bytes(4000)) if %s else len(words)
for i in range(200000):
    handle(i)
""" % works)
    trace = mt.shimmed([mt.python(), path]).trace
    if works:
        verdict, = [v for v in trace.report["verdicts"] if "the interpreter's arenas" in v["evidence"]]
        mt.check("rows.py:4 handle lets a list or a dict grow meanwhile" in verdict["advice"], verdict["advice"])
    else:
        head = " ".join(trace.summary().split())
        mt.check(re.search(r" MiB of small objects, perhaps held by rows.py:4 handle: a load, or all of it is kept \(memtrace leaks\)", head), head)


def case_why_not():
    """The screens say which it is, and what would tell them apart."""
    for form, said in (("fill", "hardly anything else was freed"), ("warmup", "at first, then stopped")):
        why, = [r["evidence"] for r in run("c", form).trace.report["ruled_out"] if r["kind"] == "leak"]
        mt.check(said in why and "grows.c" in why, "%s: report says %r" % (form, why))
        text = " ".join(run("c", form).trace.tool("leaks").out.split())
        mt.check("no site leaks" in text and said in text, "%s: leaks says %r" % (form, text[:600]))


PIECES = 150
BUILDS = """import time
def temporary(n): return len(bytes(n))
def build(kept):
""" + "".join("    kept.append(bytes(1_000_000)); temporary(2_000_000); time.sleep(0.02)\n" for _ in range(PIECES))


def case_one_large_piece_of_work():
    """A library builds what it returns, array by array, and frees more than it keeps; but none of that is made twice by one stack."""
    place = os.path.join(mt.scratch("once"), "site-packages")
    os.mkdir(place)
    with open(os.path.join(place, "builds.py"), "w", encoding="ascii") as file:
        file.write(BUILDS)
    code = "import builds\ndef main():\n    kept = []\n    builds.build(kept)\n    print(sum(map(len, kept)))\nmain()"
    done = mt.shimmed([mt.python(), "-B", "-c", code], env={"PYTHONPATH": place})
    mt.equal(done.out.split(), [str(PIECES * 1_000_000)], "what it kept")
    mt.equal(set(opinions_of(done.trace.settle()).values()), {False}, "opinions")


def case_only_fills():
    """Nothing else is freed, however long it goes on: a fact, and no leak. That its list is now and then full makes no steps."""
    done = run("python", "long")
    site, kept = of_site(done), done.account["kept_bytes"]
    fact, = done.trace.report["facts"]
    mt.equal((fact["kind"], site["outlook"]), ("grows", "grows"), "kind, outlook")
    mt.check("hardly anything else was freed" in fact["evidence"] and "more each second" in fact["evidence"], fact["evidence"])
    mt.between(0.98 * kept, fact["bytes"], 1.02 * kept, "bytes")
    mt.between(0.95 * kept / LONG, site["slope_bytes_per_s"], 1.05 * kept / LONG, "bytes a second")
    mt.equal(done.trace.report["steps"], None, "steps")
    mt.equal(set(opinions_of(done.trace).values()), {False}, "opinions")


mt.main(at_once=4)
