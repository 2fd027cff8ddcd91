#!/usr/bin/env python3
"""memtrace export --format pprof, as Go's pprof reads it: its figures are those of peak and report --json."""
import collections
import functools
import json
import os
import re
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import cases
import consumers
import golden_traces
import mt


def run(*words):
    return mt.execute([mt.MEMTRACE, *words])


def export(trace, *words, said=""):
    consumers.path("pprof")
    out = os.path.join(mt.scratch("pprof"), "out.pb.gz")
    done = run("export", "--format", "pprof", "-o", out, *words, trace)
    mt.equal((done.status, done.out, done.err), (0, "", said), "export %s" % (words,))
    mt.equal(os.listdir(os.path.dirname(out)), ["out.pb.gz"], "what is left beside it")
    return out


Sample = collections.namedtuple("Sample", "values stack labels")


class Profile:
    """What `pprof -raw` says."""

    def __init__(self, path):
        head, rest = consumers.pprof("-raw", path).split("\nSamples:\n")
        samples, rest = rest.split("\nLocations\n")
        locations, self.mappings = ("\n" + rest).split("\nMappings")
        self.period = re.findall(r"^Period(?:Type)?: (.*)", head, re.M)
        self.comments = re.findall(r"^Comment: (.*)", head, re.M)
        self.locations = {}
        for line in locations.strip("\n").splitlines():
            known = re.match(r"\s*(\d+): (0x[0-9a-f]+) (?:M=\d+ )?(.*) s=\d+", line)
            if known:
                number = known[1]
                self.locations[number] = []
            self.locations[number].append((known[3] if known else re.match(r"\s*(.*) s=\d+", line)[1]).rsplit(" ", 1))
        types, *lines = samples.splitlines()
        self.types = [re.sub(r"\[dflt\]", "", word) for word in types.split()]
        self.default = [word[:-6] for word in types.split() if word.endswith("[dflt]")]
        self.samples = []
        for line in lines:
            values = re.match(r"([\d ]+): ([\d ]+)$", line)
            if values:
                self.samples.append(Sample([int(v) for v in values[1].split()], values[2].split(), {}))
            else:
                self.samples[-1].labels.update(re.findall(r"(\w+):\[(.*?)\](?= \w+:\[|$)", line.strip()))

    def sums(self, kind):
        """{kind of memory: sum}"""
        at, sums = self.types.index(kind), collections.Counter()
        for s in self.samples:
            labels = s.labels
            name = labels["kind"] if labels["device"] == "host" else "%s %s" % (labels["device"], labels["kind"])
            sums[name] += s.values[at]
        return {name: size for name, size in sums.items() if size}

    def names(self, sample):
        """Innermost first."""
        return [name for number in sample.stack for name, _ in self.locations[number]]


def moments(trace, *words, what="bytes"):
    page = json.loads(run("peak", "--json", *words, trace).out)
    found = {"heap": page.get("host"), "map": page.get("map"), "pinned": page.get("pinned")}
    for d in page["devices"]:
        found.update({"%s %s" % (d["name"], kind): d.get(kind) for kind in ("pool", "device")})
    return {kind: moment[what] for kind, moment in found.items() if moment and moment[what]}


@functools.lru_cache(None)
def busy():
    return mt.shimmed([mt.program("busy"), "20000", "1000", "300"]).trace.settle().path


@functools.lru_cache(None)
def device():
    path = os.path.join(mt.scratch("battery"), "t")
    cases.make(path, "other_process_traced", 301, True)
    return path


@mt.variants((), ("--at", "end"), ("--at", "0.01"), ("--from", "0.001", "--to", "0.02"), ("--device", "host"), ("--no-python",), ("--all-frames",))
def case_sums_are_those_of_peak(*words):
    for trace in (busy(), device()):
        p = Profile(export(trace, "--all", *words))
        mt.equal((p.types, p.default), (["alloc_objects/count", "alloc_space/bytes", "inuse_objects/count", "inuse_space/bytes"], ["inuse_space/bytes"]))
        mt.equal(p.sums("inuse_space/bytes"), moments(trace, *words), "bytes %s" % (words,))
        mt.equal(p.sums("inuse_objects/count"), moments(trace, *words, what="blocks"), "blocks %s" % (words,))


@mt.variants("devices", "gpu", "killed", "system", "tree")
def case_sums_of_golden_traces(name):
    trace = golden_traces.unpack(name, mt.scratch("golden"))
    p = Profile(export(trace, "--all"))
    mt.equal(p.sums("inuse_space/bytes"), moments(trace))
    of_process = collections.Counter()
    for s in p.samples:
        of_process[s.labels["pid"]] += s.values[0]
    page = json.loads(run("report", "--json", trace).out)
    mt.equal(set(of_process) <= {str(q["pid"]) for q in page["processes"]}, True, "processes %s" % of_process)


def case_one_kind_of_memory():
    """What failed, else the heap: kinds must not be added up. Bytes are that kind's, though small stacks are together."""
    for trace, kind in ((device(), "cuda:0 pool"), (busy(), "heap")):
        wanted = moments(trace)
        mt.check(len(wanted) > 1 or trace == busy(), "one kind alone: %s" % wanted)
        mt.equal(Profile(export(trace)).sums("inuse_space/bytes"), {kind: wanted[kind]})


def case_all_that_was_allocated():
    """Also by stacks that have nothing any more."""
    for trace in (busy(), device()):
        p, page = Profile(export(trace, "--all", "--at", "end")), json.loads(run("report", "--json", trace).out)
        for kind, key in (("heap", "host"), ("pinned", "pinned")):
            wanted = page.get(key) or {}
            mt.equal(p.sums("alloc_space/bytes").get(kind, 0), wanted.get("allocated_bytes", 0), kind)
            mt.equal(p.sums("alloc_objects/count").get(kind, 0), wanted.get("allocations", 0), kind)
        mt.check(trace != busy() or any(s.values[0] and not s.values[2] for s in p.samples), "no stack that has nothing")


def case_the_period_is_that_of_stacks():
    """1 byte where all were taken, else the mean between those that were; 3 MiB are alive, so that some are of what was taken."""
    sampled = mt.shimmed([mt.program("busy"), "20000", "1000", "6000"], env={"MEMTRACE_STACKS": "sample", "MEMTRACE_SAMPLE": "64K"}).trace.settle().path
    for trace, period, said in ((busy(), "1", ""), (sampled, "65536", "memtrace: note: stacks were sampled: their bytes are estimates\n")):
        mt.equal(Profile(export(trace, said=said)).period, ["space bytes", period])


def case_known_stacks():
    p = Profile(export(busy()))
    of_busy = [p.names(s) for s in p.samples if "busy" in p.names(s)]
    mt.check(of_busy, "no stack of busy()")
    for names in of_busy:
        mt.equal((set(names[:-3]), names[-3:]), ({"deep"}, ["busy", "main", "heap"]), "a stack")
    lines = {int(where.rsplit(":", 1)[1]) for l in p.locations.values() for name, where in l if name == "deep"}
    with open(os.path.join(mt.TOP, "tests/programs/busy.c"), encoding="utf-8") as file:
        text = file.read().splitlines()
    mt.check(lines and all("malloc" in text[n - 1] or "deep" in text[n - 1] for n in lines), "lines of deep(): %s" % lines)
    notes = subprocess.run(["readelf", "-n", mt.program("busy")], stdout=subprocess.PIPE, text=True).stdout
    mt.check(re.search(r"Build ID: (\w+)", notes)[1] in p.mappings, p.mappings)


def case_pprof_adds_up_what_it_is_asked():
    """Its own sums, by a label and by function."""
    out = export(device(), "--all")
    for kind, size in moments(device()).items():
        device_name, kind_name = kind.split() if " " in kind else ("host", kind)
        top = consumers.pprof("-top", "-unit=B", "-nodefraction=0", "-tagfocus=kind=^%s$" % kind_name, "-tagfocus=device=^%s$" % device_name, out)
        found = re.search(r"(\d+)B\s+\S+\s+" + re.escape(kind) + "$", top, re.M)
        mt.equal(found and int(found[1]), size, "%s in %s" % (kind, top))


def case_difference():
    """-diff_base of two moments is the difference of the sums."""
    before, after = export(busy(), "--at", "0.004"), export(busy(), "--at", "end")
    top = consumers.pprof("-top", "-unit=B", "-nodefraction=0", "-diff_base", before, after)
    found = re.search(r"(-?\d+)B\s+\S+\s+heap$", top, re.M)
    wanted = moments(busy(), "--at", "end")["heap"] - moments(busy(), "--at", "0.004").get("heap", 0)
    mt.equal(int(found[1]) if found else 0, wanted, top)


def case_sampled_stacks_have_no_sum_of_allocations():
    consumers.path("pprof")
    trace = mt.shimmed([mt.program("busy"), "20000", "1000", "3000"], env={"MEMTRACE_STACKS": "sample", "MEMTRACE_SAMPLE": "64K"}).trace.settle().path
    out = os.path.join(mt.scratch("pprof"), "out")
    done = run("export", "--format", "pprof", "-o", out, trace)
    mt.equal((done.status, done.err), (0, "memtrace: note: stacks were sampled: their bytes are estimates\n"))
    p = Profile(out)
    mt.equal(p.types, ["inuse_objects/count", "inuse_space/bytes"])
    sites = json.loads(run("peak", "--json", trace).out)["sites"]
    mt.equal(sum(p.sums("inuse_space/bytes").values()), sum(s["bytes"] for s in sites), "estimates")


def case_inlined_frames_are_lines_of_one_location():
    source = os.path.join(mt.scratch("inlined"), "inlined.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write("#include <stdlib.h>\nvoid *volatile kept;\n"
                   "static inline __attribute__((always_inline)) void inner(void) { kept = malloc(123456); }\n"
                   "static inline __attribute__((always_inline)) void middle(void) { inner(); }\n"
                   "__attribute__((noinline)) void outer(void) { middle(); kept = (char *)kept + 0; }\n"
                   "int main(void) { outer(); return 0; }\n")
    subprocess.run([os.environ.get("CC", "cc"), "-g", "-O1", "-o", source[:-2], source], check=True)
    p = Profile(export(mt.shimmed([source[:-2]]).trace.settle().path))
    large = [s for s in p.samples if s.values[3] == 123456]
    mt.equal(len(large), 1, "samples")
    mt.equal([name for name, _ in p.locations[large[0].stack[0]]], ["inner", "middle", "outer"], "lines of the innermost location")


def case_ranks_are_labels():
    """Also rank 0; a process without a rank has none."""
    output = os.path.join(mt.scratch("ranks"), "t")
    script = "".join("%s %s 4000 %d 300 & " % (env, mt.program("busy"), size) for env, size in (("RANK=0", 1000), ("RANK=3", 2000), ("", 3000)))
    mt.equal(mt.execute(["sh", "-c", script + "wait"], env=mt.shim_env(output)).status, 0)
    mt.Trace(output).settle()
    out = export(output)
    p = Profile(out)
    ranks = {str(q["pid"]): q["rank"] for q in json.loads(run("report", "--json", output).out)["processes"] if q["name"] == "busy"}
    samples = [s for s in p.samples if re.match("busy", s.labels["process"])]  # each was a shell before, of the same pid
    mt.equal({s.labels["pid"]: s.labels.get("rank") for s in samples}, {pid: None if rank is None else str(rank) for pid, rank in ranks.items()})
    for rank in (0, 3):
        pid, = [pid for pid, of in ranks.items() if of == rank]
        wanted = sum(s.values[p.types.index("alloc_space/bytes")] for s in samples if s.labels["pid"] == pid and s.labels["kind"] == "heap")
        top = consumers.pprof("-top", "-unit=B", "-nodefraction=0", "-sample_index=alloc_space", "-tagfocus=rank=^%d$" % rank, out)
        found = re.search(r"(\d+)B\s+\S+\s+heap$", top, re.M)
        mt.equal((bool(wanted), found and int(found[1])), (True, wanted), "heap of rank %d in %s" % (rank, top))


def case_not_for_a_terminal():
    import pty
    master, slave = pty.openpty()
    child = subprocess.run([mt.MEMTRACE, "export", "--format", "pprof", busy()], stdout=slave, stderr=subprocess.PIPE, env=mt.clean_env(), text=True)
    os.close(slave)
    os.close(master)
    mt.equal((child.returncode, "pprof is not for a terminal: -o FILE" in child.stderr), (2, True), child.stderr)


mt.main()
