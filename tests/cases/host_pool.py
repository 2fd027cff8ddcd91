#!/usr/bin/env python3
"""Pools of frameworks on the heap: TensorFlow's, here a stand-in with the names and the vtable of its allocator. Figures are
compared with the program's own account, which is in the pool's figures."""
import json
import os
import shutil
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt  # noqa: E402

LIBRARY = mt.program("libbfc.so")
SLACK = 100 << 10  # of the program itself: C++'s and the C library's; beside it a table of each region, of a 32nd of its bytes


def run(how, library=LIBRARY, **options):
    command = [mt.program("bfc"), library, how]
    done = mt.shimmed(command, **options)
    if how != "threads":  # what these reserve depends on who comes first
        mt.compare(mt.plain(command), done)
    mt.equal(done.status, 0, done.err)
    done.trace.intact()
    return done.trace, done.out


def pool_of(trace):
    return trace.report["processes"][0]["pool"]


def by_function(trace, *options):
    """Bytes and blocks that are alive at the end, by the function that asked the pool: what was freed to it is not, whatever it keeps."""
    sums = {}
    for site in trace.json("leaks", "--device", "host", *options)["sites"]:
        functions = [f["function"] for f in site["stack"]]
        if functions[0] == "bfc_take":  # else it is a table of the pool's own
            bytes, blocks = sums.get(functions[1], (0, 0))
            sums[functions[1]] = (bytes + site["bytes"], blocks + site["blocks"])
    return sums


def check_account(trace, account):
    pool = pool_of(trace)
    mt.equal((pool["framework"], pool["reserved_bytes"], pool["in_use_bytes"], pool["in_use_peak_bytes"], pool["allocations"]),
             ("TensorFlow", account["reserved"], account["keep"] + account["churn"], account["most"], account["allocations"]))
    mt.equal(by_function(trace), {n: (account[n], account[n + "_blocks"]) for n in ("keep", "churn")}, "owners at the end")
    heap = trace.report["host"]
    mt.between(account["most"], heap["peak_bytes"], account["most"] + account["reserved"] // 32 + SLACK, "the heap's peak, regions not counted")


def case_owners():
    trace, out = run("heap")
    account = json.loads(out)
    check_account(trace, account)
    text = trace.tool("report").out
    mt.check("TensorFlow's pool: at most 30.0 MiB reserved, 21.4 MiB in use" in text, "nothing of the pool in %s" % text)


def case_layout():
    """Holes are the pool's: what it has less what is in use."""
    trace, out = run("heap")
    account = json.loads(out)
    arenas = [a for a in trace.json("frag", "--device", "host")["host"][0]["arenas"] if a["kind"] == "pool"]
    mt.equal(sum(a["span_bytes"] for a in arenas), account["reserved"], "segments")
    mt.equal((sum(a["live_bytes"] for a in arenas), sum(a["live_blocks"] for a in arenas)),
             (account["keep"] + account["churn"], account["keep_blocks"] + account["churn_blocks"]))
    mt.check("pool 0x" in trace.tool("frag").out, "no row")


def case_pools_that_end():
    """The regions of a pool that is destroyed are freed, and the other pool is as it was."""
    trace, out = run("two")
    account = json.loads(out)
    pool = pool_of(trace)
    mt.equal((pool["reserved_bytes"], pool["in_use_bytes"]), (account["reserved"], account["keep"] + account["churn"]))
    mt.check(pool["reserved_peak_bytes"] > pool["reserved_bytes"], "no more reserved with two: %s" % pool)
    mt.equal(by_function(trace), {n: (account[n], account[n + "_blocks"]) for n in ("keep", "churn")}, "owners at the end")


def case_threads():
    """Four threads at one pool: no block is lost or left."""
    trace, out = run("threads")
    account = json.loads(out)
    pool = pool_of(trace)
    mt.equal((pool["reserved_bytes"], pool["in_use_bytes"], pool["in_use_blocks"]), (account["reserved"], account["keep"], 1))
    mt.equal(trace.report["losses"]["missed_frees"], 0)


def case_failures():
    """What the pool can't serve is a failure, unless who asked does without."""
    trace, _ = run("failures")
    heap = trace.report["host"]
    mt.equal(heap["failed"], 1)
    text = trace.tool("report").out
    mt.check("FAILED  tensorflow_AllocateRaw of 33,554,432 bytes" in text, "no failure in %s" % text)
    fails = [e for e in map(json.loads, trace.tool("dump", "--json", "--events").out.splitlines()) if e["record"] == "fail"]
    mt.equal([e["bytes"] for e in fails], [16 << 20, 32 << 20])


def case_by_soname():
    """Under the name that TensorFlow's library has."""
    folder = mt.scratch("tf")
    path = os.path.join(folder, "libtensorflow_framework.so.2")
    shutil.copy(LIBRARY, path)
    trace, out = run("heap", library=path)
    check_account(trace, json.loads(out))


def case_on_a_device():
    """A pool that has its memory from a driver is one of that device, as PyTorch's is."""
    cuda = os.path.join(mt.BUILD, "standin")
    command = [mt.program("bfc"), LIBRARY, "device"]
    env = {"LD_LIBRARY_PATH": cuda}
    done = mt.shimmed(command, env=env)
    mt.equal(done.status, 0, done.err)
    account = json.loads(done.out)
    device = done.trace.intact().report["devices"][0]
    mt.equal((device["pool"]["peak_allocated_bytes"], device["pool"]["peak_reserved_bytes"], device["pool"]["allocations"]),
             (account["most"], account["reserved"], account["allocations"]))
    mt.equal(pool_of(done.trace), None)


def case_full_device():
    """What the pool gives up is one failure, whatever it asked the driver before; what whoever asked can do without is none. A request that the
    driver serves when it is smaller is a retry."""
    env = {"LD_LIBRARY_PATH": os.path.join(mt.BUILD, "standin"), "MEMTRACE_STANDIN_DIR": mt.scratch("standin")}
    done = mt.shimmed([mt.program("bfc"), LIBRARY, "full"], env=env)
    mt.equal((done.status, done.out), (0, "0 0\n"), done.err)
    device = done.trace.intact().report["devices"][0]
    ooms = [o for o in device["ooms"] if o["source"] == "pool"]
    mt.equal([(o["requested_bytes"], o["requested_error_bytes"]) for o in ooms], [(3 << 30, 0)])
    mt.check("ask" in [f["function"] for f in ooms[0]["stack"]], ooms[0]["stack"])
    mt.equal(device["retries"], 2, "that of the failure, and that of the request that was served")
    text = done.trace.tool("report").out
    mt.check("asked 3,221,225,472 bytes = 3.00 GiB" in text and "WHY" in text, text)


def case_sampled_and_without_stacks():
    for mode in ("sample", "none"):
        trace, out = run("heap", env={"MEMTRACE_STACKS": mode})
        account, pool = json.loads(out), pool_of(trace)
        mt.equal((pool["reserved_bytes"], pool["in_use_bytes"]), (account["reserved"], account["keep"] + account["churn"]), mode)


mt.main()
