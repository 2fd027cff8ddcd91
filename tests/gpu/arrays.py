"""Arrays of JAX on a GPU: kept by a line, dropped, donated, copied there; at 20 moments a mark, and what JAX says is alive."""
import ctypes
import functools
import json
import os
import sys

try:
    import jax
    import jax.numpy as jnp
    jax.devices("cuda")
except (ImportError, RuntimeError) as why:
    print("no JAX", why)
    sys.exit(0)
import numpy

SHIM = ctypes.CDLL(None)
MARK = getattr(SHIM, "memtrace_mark", lambda name: None)


@jax.jit
def work(a):
    return a @ a * 0.5


@functools.partial(jax.jit, donate_argnums=0)
def step(state):
    return state * 0.5 + 1.0


def keep(held, n):
    held.append(work(jnp.ones((n, n))))


def drop(n):
    return float(work(jnp.ones((n, n)) * 2.0).sum())


def main():
    getattr(SHIM, "memtrace_start", lambda: None)()
    held, moments = [], []
    state = jax.device_put(numpy.ones((1000, 1000), numpy.float32))
    for i in range(20):
        keep(held, 100 + 20 * i)
        drop(600)
        state = step(state)
        if i % 3 == 2:
            del held[0]
        jax.block_until_ready([state, *held])
        moments.append(sum(a.on_device_size_in_bytes() for a in jax.live_arrays()))
        MARK(b"moment %d" % i)
    sizes = [a.on_device_size_in_bytes() for a in held]
    print(json.dumps({"moments": moments, "kept": sum(sizes), "kept_blocks": len(sizes), "stats": jax.devices()[0].memory_stats()}))
    sys.stdout.flush()
    os._exit(0)


main()
