#!/usr/bin/env python3
"""Every stack of programs with hard stacks, and of real ones, is compared with libunwind's (tests/unwind/verify.c)."""
# timeout: 400
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

HERE = os.path.join(mt.BUILD, "tests/unwind")
HOW = ("O0", "O2", "Os", "O3fp")
# (trap, mode, captures at least, all | some | none of them cut). libunwind's fast path keeps rules across dlclose and
# needs more than 8 KiB of stack; nobody can tell the right stack where there is neither table nor frame pointer.
TRAPS = (
    ("alloca", "verify", 30000, "none"), ("stale", "verify", 9000, "none"), ("noreturn", "verify", 14000, "none"),
    ("realigned", "verify", 7000, "none"), ("deep", "verify", 6000, "some"), ("around-depth", "verify", 6000, "some"),
    ("signal", "verify", 13000, "none"), ("altstack", "step", 19000, "none"), ("altstack-inside", "verify", 19000, "none"),
    ("anywhere", "verify", 5000, "none"), ("coroutines", "verify", 68000, "none"), ("longjmp", "verify", 33000, "none"),
    ("threads", "verify", 324000, "none"), ("fork", "verify", 500, "none"), ("jit", "verify", 2000, "none"),
    ("rbx", "verify", 4000, "none"), ("frameless", "capture", 20000, "some"), ("wild-stack", "capture", 200, "all"),
    ("dlclose", "step", 1600, "none"), ("lazy", "step", 900, "none"),
)


def verify(command, mode, least, cut="none", status=0):
    report = os.path.join(mt.scratch(), "report")
    done = mt.execute(command, timeout=300, env=mt.clean_env(
        LD_PRELOAD=os.path.join(HERE, "libverify.so"), UNWIND_MODE=mode, UNWIND_REPORT=report, OMP_NUM_THREADS="1"))
    mt.equal(done.status, status, "status of %s" % done)
    totals = {}
    with open(report) as file:  # a line for each process
        for line in file:
            for key, value in (pair.split("=") for pair in line.split()):
                totals[key] = totals.get(key, 0) + int(value)
    mt.equal(totals["differ"], 0, "%d captures; stacks that differ: %s" % (totals["captures"], done.err[:3000]))
    mt.equal(totals["longer"], 0, "stacks where libunwind stopped early")
    mt.check(totals["captures"] >= least, "only %d captures" % totals["captures"])
    captures, truncated = totals["captures"], totals["truncated"]
    good = {"none": truncated == 0, "some": 0 < truncated < captures, "all": truncated == captures, "any": True}
    mt.check(good[cut], "%d of %d captures are cut" % (truncated, captures))
    return totals


def trap_case(name, mode, least, cut):
    def case():
        for how in HOW:
            try:
                verify([os.path.join(HERE, "traps-" + how), name, HERE], mode, least, cut)
            except mt.Fail as why:
                mt.fail("%s: %s" % (how, why))
    return case


for trap in TRAPS:
    globals()["case_trap_" + trap[0].replace("-", "_")] = trap_case(*trap)


def case_parts():
    done = mt.execute([os.path.join(HERE, "small")])
    mt.check(done.status == 0 and "not ok" not in done.out, done)


def case_random_programs():
    for how in HOW:
        verify([os.path.join(HERE, "random-" + how)], "verify", 40000)


@mt.variants(40, 500, 2000)
def case_up_and_down(frames):
    """Frames come and go at both ends of what is shown."""
    verify([mt.program("deep"), str(frames), "8000", "wander"], "verify", 6000, "any")


def case_deeper_than_the_limit():
    """A stack of which only the innermost frames are shown is joined like any other: most of its frames are not walked again."""
    totals = verify([mt.program("deep"), "2000", "8000"], "verify", 6000, "any")
    mt.check(int(totals["fresh"]) < 20 * int(totals["captures"]), "frames walked: %s" % totals)


def case_init_without_tables():
    """A library that is loaded later, whose _init has two calls: both stacks reach main(); libunwind's end in _init."""
    if os.uname().machine != "x86_64":
        mt.skip("x86-64's crti.o")
    command = [mt.program("dlloop"), "1", mt.program("libinit.so"), mt.program("libmod_a.so")]
    totals = verify(command, "verify", 10)
    mt.check(totals["beyond_init"] >= 2, totals)
    sites = mt.shimmed(command).trace.json("peak", "--at", "end", "--by", "stack", "--all-frames", "--device", "heap")["sites"]
    stacks = [[f["function"] for f in s["stack"]] for s in sites if s["bytes"] == s["blocks"] * 12345]
    mt.equal(len(stacks), 2, "stacks of what _init allocated")
    for stack in stacks:
        mt.check("take" in stack and "use" in stack and "main" in stack, stack)


def case_exceptions():
    verify([os.path.join(HERE, "exceptions")], "verify", 50000)


def case_fibers():
    """Coroutines of boost.context."""
    path = os.path.join(HERE, "fibers")
    if not os.path.exists(path):
        mt.skip("no boost.context")
    verify([path], "verify", 3000)


def case_greenlets():
    """Pieces of one stack that are copied to and fro. What lies outwards of a greenlet is whatever ran last: now and then nothing."""
    if not mt.has_module("greenlet"):
        mt.skip("no greenlet")
    totals = verify([mt.python(), os.path.join(mt.TOP, "tests/programs/pystacks.py"), os.path.join(mt.scratch(), "log"), "greenlets"], "verify", 1000, "any")
    mt.check(totals["truncated"] < totals["captures"] / 1000, "cut: %s" % totals)


def case_perl():
    verify([mt.need("perl"), "-e", "sub f { my $n = shift; return $n ? f($n - 1) . 'x' : sprintf '%d', rand 10 } "
            "for (1..300) { my @a = sort { $a cmp $b } map { f($_ % 40) } 1..20; eval { die \"@a\" }; 'ab' x 9 =~ /(a|b)+/ }"],
           "verify", 3000)


def case_node():
    # Compiled JavaScript has no unwind tables; where its frame pointers end is a matter of opinion.
    script = "const t = []; for (let i = 0; i < 45000; i++) t.push(JSON.parse(JSON.stringify({i, s: 'x'.repeat(i % 99)}))); t.sort()"
    totals = verify([mt.need("node"), "-e", script], "verify", 100000, "any")
    mt.check(totals["truncated"] < totals["captures"] / 100, "cut: %s" % totals)


TORCH = """
import torch, torch.nn as nn
m = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 10)); opt = torch.optim.AdamW(m.parameters())
for i in range(20):
    opt.zero_grad(); nn.functional.cross_entropy(m(torch.randn(32, 64)), torch.randint(0, 10, (32,))).backward(); opt.step()
"""


def case_torch():
    if not mt.has_module("torch"):
        mt.skip("no torch")
    verify([mt.python(), "-c", TORCH], "verify", 1000000)


def shim_verified(command, **env):
    """Under the shim itself: what stands in its call tree. A dictionary of sums over the processes."""
    report = os.path.join(mt.scratch(), "report")
    done = mt.shimmed(command, timeout=300, env=dict(env, MEMTRACE_VERIFY="1", MEMTRACE_VERIFY_REPORT=report, OMP_NUM_THREADS="1"))
    mt.equal(done.status, 0, "status of %s" % done)
    totals = {}
    with open(report) as file:
        for pair in file.read().split():
            key, value = pair.split("=")
            totals[key] = totals.get(key, 0) + int(value)
    return totals, done


@mt.long
def case_shim_verifies_torch():
    """MEMTRACE_VERIFY=1: every capture of one PyTorch run."""
    if not mt.has_module("torch"):
        mt.skip("no torch")
    totals, done = shim_verified([mt.python(), "-c", TORCH])
    mt.equal([totals[k] for k in ("differ", "longer", "shorter", "truncated")], [0, 0, 0, 0], "%s %s" % (totals, done.err[:3000]))
    mt.check(totals["captures"] >= 1000000, "only %d captures" % totals["captures"])
    events = done.trace.report
    allocations = sum(events[kind]["allocations"] for kind in ("host", "map"))
    mt.between(allocations - 2000, totals["captures"], allocations + 2000, "captures compared, of %d allocations" % allocations)


def case_shim_verification_sees_differences():
    totals, _ = shim_verified([mt.program("sampled"), "1", "2000"], MEMTRACE_VERIFY_SKEW="1")
    mt.check(totals["captures"] >= 1000 and totals["differ"] >= totals["captures"] - 10, "skewed: %s" % totals)


@mt.variants("block", "chain", "stack")
def case_memory_beside_the_stack_is_unmapped_by_libc(what):
    """Code without tables has its frame pointer in it: the program lives, and every malloc is recorded."""
    trace = mt.same([mt.program("bare"), what, "10"])
    mt.between(60, trace.host["allocations"], 150, "allocations")


def case_own_stack_is_not_copied():
    """A JIT's frames on the stack of its thread are read there: the kernel is asked once for each thread, not at each malloc."""
    command, output = [mt.program("bare"), "own", "5000"], os.path.join(mt.scratch("trace"), "t")
    strace = [mt.need("strace"), "-f", "-qq", "-e", "trace=process_vm_readv", "-e", "signal=none"]
    if "ptrace" in mt.plain([strace[0], "true"]).err:
        mt.skip("strace can't trace here")
    done = mt.execute([*strace, "-E", "LD_PRELOAD=" + mt.SHIM, "-E", "MEMTRACE_OUTPUT=" + output, *command], env=mt.clean_env())
    mt.equal(done.status, 0, "status of %s" % done)
    calls = done.err.count("process_vm_readv")
    mt.check(0 < calls < 50, "%d calls for 10,000 mallocs" % calls)
    trace = mt.Trace(output).intact()
    mt.between(10000, trace.host["allocations"], 10100, "allocations")
    mt.check(trace.report["losses"]["truncated_stacks"] < 100, "cut: %s" % trace.report["losses"])


def case_smaller_stack_where_another_was():
    """Of coroutines: frames that were kept of the first one lie in memory that libc has unmapped, where the second one has none."""
    want = mt.plain([mt.program("restack")])
    if want.out == "elsewhere\n":
        mt.skip("no block was where the first one was")
    mt.equal(want.out, "same\n", "frames of both")
    sites = mt.same([mt.program("restack")]).sites()
    mt.equal(mt.blocks_of(sites, "leaf"), (2 * 24, 2), "what the coroutines allocated")


mt.main()
