#!/usr/bin/env python3
"""Buffers of PJRT plugins (JAX): a stand-in plugin of our own, called through its table by a program that keeps an account. Figures are compared with the
plugin's."""
import json
import os
import shutil
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import browser  # noqa: E402
import fakehip  # noqa: E402
import mt  # noqa: E402

PLUGIN = mt.program("libpjrt.so")
KEPT = (5 * ((3 << 20) + (1 << 16)), 10)  # what keep() and lose() have at the end


def run(how, plugins=(PLUGIN,), **options):
    """The trace, and each plugin's account."""
    command = [mt.program("pjrt"), how, *plugins]
    done = mt.shimmed(command, **options)
    mt.compare(mt.plain(command, **options), done)
    mt.equal(done.status, 0, done.err)
    accounts = [json.loads(line) for line in done.out.splitlines()]
    for account in accounts:
        if not how.startswith("host"):
            mt.equal((account["in_use"], account["kept_blocks"]), (account["kept"], 10), "the program's own account")
        mt.equal((account["errors"], account["executables"], account["events"]), (0, 0, 0), "what nobody has destroyed")
        mt.equal((account["waited"], account["refused"]), (0, 0), "asked for an address too early, or too late")
    return done.trace.intact(), accounts


def check_device(device, account, allocations=None):
    mt.equal((device["live_bytes"], device["live_blocks"], device["peak_bytes"], device["allocations"]),
             (account["in_use"], account["kept_blocks"], account["most"], allocations or account["allocations"]))
    mt.equal((device["missed_frees"], device["unknown_frees"]), (0, 0))


def by_function(trace, device):
    """Bytes and blocks that are alive at the end, by the program's function that had them made."""
    sums = {}
    for site in trace.json("leaks", "--device", device)["sites"]:
        if device == "cuda:0" and site["memory"] != "pool":
            continue  # a segment
        name = next(f["function"] for f in site["stack"] if f["function"] in ("keep", "lose", "churn", "play"))
        bytes, blocks = sums.get(name, (0, 0))
        sums[name] = (bytes + site["bytes"], blocks + site["blocks"])
    return sums


def case_owners():
    trace, accounts = run("owners")
    devices = trace.report["devices"]
    mt.equal([(d["name"], d["model"], d["total_bytes"], len(d["aliases"])) for d in devices], [("device:0", "Stand-in 9000", 1 << 30, 1)])
    check_device(devices[0], accounts[0])
    mt.equal(by_function(trace, "device:0"), {"keep": (5 * (3 << 20), 5), "lose": (5 << 16, 5)})
    mt.check("peak %.1f MiB of DEVICE 0's 1.00 GiB" % (accounts[0]["most"] / (1 << 20)) in trace.tool("report").out, "not on the screen")


def case_ends():
    """Deleted, destroyed, or both: once. Copies and what a transfer manager gives out are buffers, too."""
    trace, accounts = run("ends")
    check_device(trace.report["devices"][0], accounts[0])


def case_donated():
    """The input of each step is gone when the step returns: two are never there at once."""
    trace, accounts = run("steps")
    check_device(trace.report["devices"][0], accounts[0])
    events = [json.loads(line) for line in trace.tool("dump", "--json", "--events").out.splitlines()]
    frees = [e for e in events if e["record"] == "device-free" and e["hook"] == "PJRT_LoadedExecutable_Execute"]
    mt.equal(len(frees), 51, "donated inputs, one of them to a step that failed")


def case_views():
    trace, accounts = run("views")
    check_device(trace.report["devices"][0], accounts[0])


def case_errors():
    """A plugin that fails, or does not answer; arguments that end early: of the buffer that is not seen nothing is said."""
    trace, accounts = run("errors")
    check_device(trace.report["devices"][0], accounts[0], accounts[0]["allocations"] - 1)


def case_executables():
    """How many outputs an executable has is forgotten with it."""
    trace, accounts = run("programs")
    check_device(trace.report["devices"][0], accounts[0])


def case_threads():
    trace, accounts = run("threads")
    device = trace.report["devices"][0]
    mt.equal((device["live_bytes"], device["live_blocks"], device["allocations"]), (accounts[0]["in_use"], 10, accounts[0]["allocations"]))
    mt.equal((device["missed_frees"], device["unknown_frees"], trace.report["losses"]["missed_frees"]), (0, 0, 0))


def case_two_plugins():
    """Each has a table and devices of its own."""
    other = os.path.join(mt.scratch("plugin"), "other.so")
    shutil.copy(PLUGIN, other)
    trace, accounts = run("all", (PLUGIN, other))
    devices = trace.report["devices"]
    mt.equal([d["name"] for d in devices], ["device:0", "device:1"])
    for device, account in zip(devices, accounts):
        mt.equal((device["live_bytes"], device["live_blocks"]), KEPT)
        mt.equal(device["allocations"], account["allocations"] - 1)
        mt.equal((device["missed_frees"], device["unknown_frees"]), (0, 0))


def case_on_cuda():
    """There the driver's hooks see the memory below: buffers are blocks of a pool."""
    trace, accounts = run("cuda")
    device, account = trace.report["devices"][0], accounts[0]
    mt.equal((device["name"], device["live_bytes"], device["pool"]["peak_allocated_bytes"], device["pool"]["allocations"]),
             ("cuda:0", 0, account["most"], account["allocations"]))
    mt.equal(by_function(trace, "cuda:0"), {"keep": (5 * (3 << 20), 5), "lose": (5 << 16, 5)})
    plugin = os.path.join(mt.scratch("plugin"), "xla_cuda_plugin.so")  # what JAX's is called
    shutil.copy(PLUGIN, plugin)
    trace, _ = run("cuda", (plugin,))
    text = trace.tool("whatif").out
    mt.check("not modelled: XLA's allocator has rules of its own" in text and "PyTorch" not in text, text)


POOL = 256 << 20


def run_pool(how, name="cuda:0"):
    """A plugin with a pool in memory of a stand-in driver; its device and account."""
    drivers = os.path.join(mt.BUILD, "standin") if name == "cuda:0" else fakehip.libraries()
    trace, accounts = run(how, env={"LD_LIBRARY_PATH": drivers, "MEMTRACE_STANDIN_CONTEXT": "0", "MEMTRACE_STANDIN_DIR": mt.scratch("standin")})
    mt.equal([d["name"] for d in trace.report["devices"]], [name])
    device = trace.report["devices"][0]
    mt.equal((device["missed_frees"], device["unknown_frees"]), (0, 0))
    return trace, device, accounts[0]


def case_pool():
    """What the driver gave is the segment of the pool whose blocks the buffers are: it counts once, and each buffer lies where the plugin
    says. What is in no buffer is not called unused."""
    for how in ("pool", "pool late"):
        trace, device, account = run_pool(how)
        pool = device["pool"]
        mt.equal((pool["peak_allocated_bytes"], pool["peak_reserved_bytes"], device["peak_bytes"]), (account["most"], POOL, POOL), how)
        mt.equal(by_function(trace, "cuda:0"), {"keep": (5 * (3 << 20), 5), "lose": (5 << 16, 5)}, how)
        own = device["processes"][0]
        mt.equal((own["pool_allocated"], own["pool_free"], own["other"], own["pool_partly_seen"]),
                 (account["in_use"], POOL - account["in_use"], 0, True), how)
        frag = trace.json("frag", "--device", "cuda:0", "--at", "end")["devices"][0]
        mt.equal((len(frag["segments"]), frag["segments"][0]["size_bytes"], frag["segments"][0]["used_bytes"], frag["stray_bytes"]),
                 (1, POOL, account["in_use"], 0), how)
        places = [(b["address"], b["size_bytes"]) for b in frag["segments"][0]["blocks"]]
        mt.equal((len(places), all(a + n <= b for (a, n), (b, _) in zip(places, places[1:]))), (10, True), places)
        text = trace.tool("report").out
        mt.check("rest of XLA's pool" in text and "unused in pool" not in text, text)
        page = browser.ask(browser.page(trace.path), "return document.body.innerText", hash="#tab=host")
        mt.check("rest of XLA's pool" in page and "pool, unused" not in page, "the page: %s" % page[:3000])
        mt.check("where no buffer lies are temporaries, code or free room" in trace.tool("frag").out, "frag says nothing of it")


def case_temporaries():
    """What a call takes on the device while it runs was there together with what it gives out, and is the caller's."""
    trace, accounts = run("owners temporary")
    check_device(trace.report["devices"][0], accounts[0])
    mt.check(accounts[0]["most"] == accounts[0]["in_use"] + (7 << 20), "the plugin took none: %s" % accounts[0])
    peak = trace.json("peak", "--device", "device:0")["sites"][0]
    mt.equal((peak["bytes"], peak["blocks"], "keep" in [f["function"] for f in peak["stack"]]), (5 * (3 << 20) + (7 << 20), 6, True))
    for how in ("pool temporary", "pool late temporary"):
        pool, account = run_pool(how)[1:]
        mt.equal(pool["pool"]["peak_allocated_bytes"], account["most"], how)
    donated = run("steps temporary")
    check_device(donated[0].report["devices"][0], donated[1][0])


def case_pool_on_rocm():
    """JAX's buffers are blocks of the pool whose memory HIP gave."""
    for how in ("pool rocm", "pool late rocm temporary"):
        _, device, account = run_pool(how, "hip:0")
        pool, own = device["pool"], device["processes"][0]
        mt.equal((pool["peak_allocated_bytes"], pool["peak_reserved_bytes"], device["peak_bytes"]), (account["most"], POOL, POOL), how)
        mt.equal((own["pool_allocated"], own["other"], own["pool_partly_seen"]), (account["most"], 0, True), how + ": at its peak")


def case_pool_of_the_driver_s():
    """Each buffer is asked of the driver: nothing is kept."""
    _, device, account = run_pool("pool each")
    mt.equal((device["pool"]["peak_allocated_bytes"], device["pool"]["peak_reserved_bytes"], device["peak_bytes"]), (account["most"],) * 3)


def failures_of(trace, device, function):
    for o in device["ooms"]:
        mt.check(function in [f["function"] for f in o["stack"]], o["stack"])
        mt.equal((o["source"], o["requested_error_bytes"]), ("pool", 0))
    text = trace.tool("report").out
    mt.check("OUT OF MEMORY" in text and "WHY" in text, text)
    return [o["requested_bytes"] for o in device["ooms"]]


def case_exhausted():
    """RESOURCE_EXHAUSTED is a failure, with the bytes that its text names. Another error is none."""
    trace, device, _ = run_pool("pool exhausted")
    mt.equal(failures_of(trace, device, "ask_too_much"), [POOL + 4, POOL + 4, 3 << 30, 0])
    mt.check("asked for an unknown number of bytes" in trace.tool("report").out, "the last one's bytes are made up")
    mt.equal(run("owners")[0].report["devices"][0]["ooms"], [])


def case_exhausted_later():
    """A computation that fails later: one failure, of the line that dispatched, whatever else it was the input of. What it was to make never
    had memory."""
    trace, device, account = run_pool("pool late too much")
    mt.equal(failures_of(trace, device, "ask_too_much_later"), [POOL + 4] * 2)
    mt.equal((device["pool"]["peak_allocated_bytes"], device["pool"]["allocations"]), (account["in_use"], account["allocations"] - 10))
    mt.equal(by_function(trace, "cuda:0"), {"keep": (5 * (3 << 20), 5), "lose": (5 << 16, 5)})


def case_short_tables():
    """A table that ends early, or lacks a function, is copied as it is."""
    plain = run("owners")[1][0]["bytes"]
    trace, accounts = run("short")
    mt.check(accounts[0]["bytes"] < plain, "it is no shorter")
    mt.equal(trace.report["devices"], [])  # IsOnCpu is not in it, so nothing is known of a buffer
    trace, accounts = run("missing")
    mt.equal(accounts[0]["missing"], 1)
    check_device(trace.report["devices"][0], accounts[0])


def case_other_versions():
    """Of another major version nothing is known: it is left alone."""
    trace, _ = run("major")
    mt.equal(trace.report["devices"], [])


def outputs(trace, screen, *options):
    """Bytes and blocks of outputs on the host, by the function that dispatched; None = the plugin's own thread."""
    sums = {}
    for site in trace.json(screen, "--device", "host", "-n", "100", *options)["sites"]:
        functions = [f["function"] for f in site["stack"]]
        name = next((f for f in functions if f in ("keep", "host", "donating", "compute")), None)
        bytes, blocks = sums.get(name, (0, 0))
        if name and site["bytes"] >= 4096 * site["blocks"]:  # else they are handles
            sums[name] = (bytes + site["bytes"], blocks + site["blocks"])
    return sums


def case_on_the_host():
    """Memory of the host is malloc's, and counts there, once. What a thread of the plugin's allocates is whose call it computes."""
    trace, _ = run("host")
    mt.equal(trace.report["devices"], [])
    mt.equal(outputs(trace, "leaks"), {"keep": (4 << 20, 4)}, "at the end")
    peak = outputs(trace, "peak")
    mt.equal((peak["keep"], trace.report["losses"]["missed_frees"]), ((4 << 20, 4), 0), "at the peak")


def case_on_the_host_threads():
    """Three threads donate what the plugin is computing: it is never asked for the address of what is being donated."""
    trace, _ = run("host threads")
    mt.equal((outputs(trace, "leaks"), trace.report["losses"]["missed_frees"]), ({}, 0))


@mt.variants(("xla", "jax.config.update('jax_cpu_enable_async_dispatch', False)"), ("tensorflow", "tf.config.run_functions_eagerly(True)"))
def case_threads_that_work_for_any_line(library, setting):
    """Whose it is can't be told: the advice and the list of owners say with which setting it can."""
    trace = mt.shimmed([mt.program("works"), library]).trace
    verdict, screen = trace.report["verdicts"][0], trace.tool("report").out
    mt.check(verdict["kind"] == "leak" and verdict["advice"].endswith("; %s shows who asked" % setting), verdict)
    mt.check("\n      %s shows whose\n" % setting in screen, screen)


def case_sampled_and_without_stacks():
    for mode in ("sample", "none"):
        trace, accounts = run("all", env={"MEMTRACE_STACKS": mode})
        mt.equal((trace.report["devices"][0]["live_bytes"], trace.report["devices"][0]["live_blocks"]), KEPT, mode)


mt.main()
