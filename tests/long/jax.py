#!/usr/bin/env python3
"""Real JAX on a real PJRT plugin, XLA's for the CPU: bytes equal jax.live_arrays() at 20 moments, what is computed on XLA's threads is the line's that
dispatched, and a leak and its healthy twin are told apart. They are installed into the build folder, or JAX_PYTHON names an interpreter that has them."""
# timeout: 1800
import json
import os
import re
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import frameworks  # noqa: E402
import mt  # noqa: E402

MARK = 1000003  # bytes: a block of malloc of so many and i is moment i
LOOKS = 10  # at each moment, as XLA gives back what was deleted when the call is over that used it, on a thread of its own
OWNER = 6  # class of the mark that says whose a block is
EXECUTE = "PjRtCApiLoadedExecutable::Execute("  # of jaxlib: calls the plugin's table

BEGIN = """
import ctypes, functools, json, os, sys, time
import jax
from jax._src import xla_bridge
import xla_plugins.xla_cpu_pjrt as plugin
xla_bridge.register_plugin("xla_cpu_pjrt", library_path=os.path.join(os.path.dirname(plugin.__file__), "xla_cpu_pjrt.so"))
jax.config.update("jax_platforms", "xla_cpu_pjrt")
import jax.numpy as jnp
@jax.jit
def work(a):
    return a @ a * 0.5
@jax.jit
def look(arrays):
    return sum(a.ravel()[0] for a in arrays)
held = []
def end(**account):
    jax.block_until_ready(held)
    # what is given to a call has been told of when that returns
    look(held).block_until_ready()
    print(json.dumps(dict(account, held=sum(a.nbytes for a in held), blocks=len(held))))
    sys.stdout.flush()
    os._exit(0)
"""

MOMENTS = """
malloc = ctypes.CDLL(None).malloc
moments = []
def keep(n):
    held.append(work(jnp.ones((n, n))))
def drop(n):
    return float(work(jnp.ones((n, n)) * 2.0).sum())
for i in range(20):
    keep(100 + 20 * i)
    drop(600)
    if i % 3 == 2:
        del held[0]
    jax.block_until_ready(jax.live_arrays())
    moments.append(sum(a.nbytes for a in jax.live_arrays()))
    for k in range(LOOKS):
        malloc(MARK + i)
        time.sleep(0.001 * 2 ** k)
end(moments=moments)
""".replace("MARK", str(MARK)).replace("LOOKS", str(LOOKS))

# each program's arrays are dispatched by keep()
PROGRAMS = {
    # many calls are under way at once, whose inputs are not there yet
    "leak": """
def keep(x):
    held.append(work(x))
x = jnp.ones((512, 512))
for i in range(40):
    keep(x if i % 4 == 0 else held[-1])
end()
""",
    "healthy": """
def keep(x):
    held.append(work(x))
    del held[:-2]
x = jnp.ones((512, 512))
for i in range(40):
    keep(x)
end()
""",
    "donated": """
@functools.partial(jax.jit, donate_argnums=0)
def step(state):
    return state @ state * 0.5
def keep(state):
    return step(state)
state = jnp.ones((512, 512))
for i in range(60):
    state = keep(state)
held.append(state)
end()
""",
    "shapes": """
def keep(n):
    held.append(work(jnp.ones((n, n))))
for n in range(100, 600, 50):
    keep(n)
end()
""",
    "grad": """
@jax.jit
def step(w, x):
    return w - 0.1 * jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)
def keep(w, x):
    held.append(w)
    return step(w, x)
w, x = jnp.ones((256, 256)), jnp.ones((64, 256))
for i in range(20):
    w = keep(w, x)
held.append(w)
del held[0]
end()
""",
}


def run(text, **env):
    path = os.path.join(mt.scratch(), "program.py")
    with open(path, "w") as file:
        file.write(BEGIN + text)
    done = mt.shimmed([frameworks.jax(), path], env=dict(env, TF_CPP_MIN_LOG_LEVEL="3"), timeout=600)
    mt.equal(done.status, 0, done.err[-2000:])
    return done.trace.intact(), json.loads(done.out)


def of_calls(trace, screen):
    """Bytes and blocks of outputs, by the program's function that dispatched."""
    sums = {}
    for site in trace.json(screen, "--device", "host", "-n", "1000")["sites"]:
        functions = [f["function"] or "" for f in site["stack"]]
        if EXECUTE not in functions[0]:
            continue
        name = next((f for f in functions if f in ("keep", "drop", "end")), None)
        bytes, blocks = sums.get(name, (0, 0))
        sums[name] = (bytes + site["bytes"], blocks + site["blocks"])
    return sums


def case_moments():
    trace, account = run(MOMENTS)
    live, outputs, looks = {}, [], []  # a block: bytes, looks before it was there and before it was gone
    events = os.path.join(mt.scratch(), "events")  # a GiB
    with open(events, "w") as out:
        mt.equal(subprocess.run([mt.MEMTRACE, "dump", "--json", "--events", trace.path], stdout=out, timeout=mt.WAIT).returncode, 0)
    for line in open(events):
        e = json.loads(line)
        if e["record"] == "alloc":
            live[e["addr"]] = [e["size"], len(looks), None]
            if MARK <= e["size"] < MARK + 20 and e["hook"] == "malloc":
                looks.append(e["size"] - MARK)
        elif e["record"] == "free" and e["addr"] in live:
            live.pop(e["addr"])[2] = len(looks)
        elif e["record"] == "mark" and e["class"] == OWNER:
            mt.check(e["addr"] in live, "a mark of no block: %s" % e)
            if not any(b is live[e["addr"]] for b in outputs[-100:]):  # else it was donated
                outputs.append(live[e["addr"]])
    got = {}
    for k, moment in enumerate(looks):
        seen = sum(size for size, born, gone in outputs if born <= k and (gone is None or gone > k))
        got[moment] = min(seen, got.get(moment, seen))
    mt.equal([got[i] for i in range(20)], account["moments"], "bytes at 20 moments")
    mt.equal(of_calls(trace, "leaks")["keep"], (account["held"], account["blocks"]))


def case_owners():
    for name, text in PROGRAMS.items():
        trace, account = run(text)
        mt.equal(of_calls(trace, "leaks").get("keep"), (account["held"], account["blocks"]), name)
        mt.equal(trace.report["losses"]["missed_frees"], 0, name)


def offsets(text, header, folder):
    """What the expressions are in C."""
    source = os.path.join(folder, "offsets.c")
    with open(source, "w") as file:
        file.write('#include <stddef.h>\n#include <stdio.h>\n#include "%s"\nint main(void) {\n' % header)
        file.writelines('printf("%%zu\\n", (size_t)(%s));\n' % e for e in text)
        file.write("}\n")
    done = mt.execute(["cc", "-std=gnu11", "-w", "-I", mt.TOP, "-o", source[:-2], source])
    mt.equal(done.status, 0, done.err[-2000:])
    return mt.execute([source[:-2]]).out.split()


def case_layout():
    """What we declare of PJRT's interface is what the plugin's own header says."""
    folder, ours = mt.scratch(), os.path.join(mt.TOP, "shim/device/pjrt_abi.h")
    found = mt.execute([frameworks.jax(), "-c", "import xla_plugins.xla_cpu_pjrt as p; print(p.__path__[0])"], timeout=300).out.strip()
    theirs = os.path.join(found, "include/pjrt_c_api.h")
    with open(ours) as file:
        places = re.findall(r"^\tPJRT_(\w+) = \d+", file.read(), re.M)
    mt.check(len(places) > 25, places)
    pairs = [("offsetof(struct pjrt_table, function) + 8 * PJRT_%s" % p, "offsetof(PJRT_Api, PJRT_%s)" % p) for p in places]
    pairs.append(("offsetof(struct pjrt_table, version.major)", "offsetof(PJRT_Api, pjrt_api_version.major_version)"))
    for struct, fields in (
            ("Client_Create", {"client": "client"}),
            ("Client_BufferFromHostBuffer", {"client": "client", "device": "device", "memory": "memory", "buffer": "buffer"}),
            ("Client_CreateUninitializedBuffer", {"device": "device", "memory": "memory", "buffer": "buffer"}),
            ("Client_CreateViewOfDeviceBuffer", {"buffer": "buffer"}),
            ("AsyncHostToDeviceTransferManager_RetrieveBuffer", {"buffer": "buffer_out"}),
            ("Event_OnReady", {"event": "event", "call": "callback", "argument": "user_arg"}),
            ("Device_MemoryStats", {"device": "device", "in_use": "bytes_in_use", "limit": "bytes_limit", "limit_known": "bytes_limit_is_set",
                                    "pool": "pool_bytes", "pool_known": "pool_bytes_is_set"}),
            ("Memory_AddressableByDevices", {"memory": "memory", "devices": "devices", "count": "num_devices"}),
            ("LoadedExecutable_Execute", {"executable": "executable", "inputs": "argument_lists", "device_count": "num_devices",
                                          "input_count": "num_args", "outputs": "output_lists", "device": "execute_device"})):
        pairs += [("offsetof(struct pjrt_%s, %s)" % (struct, a), "offsetof(PJRT_%s_Args, %s)" % (struct, b)) for a, b in fields.items()]
    for name, field in (("Buffer_Destroy", "buffer"), ("Error_Destroy", "error"), ("Executable_NumOutputs", "executable"), ("Event_IsReady", "event"),
                        ("Event_Error", "event"), ("Error_GetCode", "error")):
        pairs.append(("offsetof(struct pjrt_one, thing)", "offsetof(PJRT_%s_Args, %s)" % (name, field)))
    for name, field in (("Buffer_OnDeviceSizeInBytes", "on_device_size_in_bytes"), ("Buffer_Device", "device"), ("Buffer_IsOnCpu", "is_on_cpu"),
                        ("Buffer_IsDeleted", "is_deleted"), ("Buffer_ReadyEvent", "event"), ("Buffer_UnsafePointer", "buffer_pointer"),
                        ("Event_IsReady", "is_ready"), ("Error_GetCode", "code"), ("Device_LocalHardwareId", "local_hardware_id"), ("Executable_NumOutputs", "num_outputs"),
                        ("LoadedExecutable_GetExecutable", "executable"), ("Device_GetDescription", "device_description")):
        pairs.append(("offsetof(struct pjrt_one, out)", "offsetof(PJRT_%s_Args, %s)" % (name, field)))
    for name, field in (("CopyToDevice", "dst_buffer"), ("CopyToMemory", "dst_buffer")):
        pairs.append(("offsetof(struct pjrt_copy, buffer)", "offsetof(PJRT_Buffer_%s_Args, %s)" % (name, field)))
    for name, field in (("Client_PlatformName", "platform_name"), ("DeviceDescription_Kind", "device_kind"), ("Memory_Kind", "kind"),
                        ("Error_Message", "message")):
        pairs.append(("offsetof(struct pjrt_text, text)", "offsetof(PJRT_%s_Args, %s)" % (name, field)))
    pairs.append(("PJRT_RESOURCE_EXHAUSTED", "PJRT_Error_Code_RESOURCE_EXHAUSTED"))
    got, want = offsets([a for a, _ in pairs], ours, folder), offsets([b for _, b in pairs], theirs, folder)
    mt.equal([(p, g) for p, g in zip(pairs, got)], [(p, w) for p, w in zip(pairs, want)])
    sizes = [("sizeof(struct pjrt_one)", "sizeof(PJRT_Buffer_%s_Args)" % n) for n in ("IsDeleted", "Device", "UnsafePointer", "OnDeviceSizeInBytes")]
    sizes += [("sizeof(struct pjrt_Device_MemoryStats)", "sizeof(PJRT_Device_MemoryStats_Args)")]
    mt.equal(offsets([a for a, _ in sizes], ours, folder), offsets([b for _, b in sizes], theirs, folder), "sizes")


mt.main()
