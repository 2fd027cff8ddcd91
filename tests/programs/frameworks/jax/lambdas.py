# truth: leak score -; A lambda is jitted anew in each call, so that none is found again
# truth(healthy): passes - -; it is jitted once
import sys
import jax
import jax.numpy as jnp

HEALTHY = "healthy" in sys.argv
once = jax.jit(lambda x: jnp.tanh(x * 2.0).sum() + jnp.sin(x).mean())
kept = []


def score(x):
    f = once if HEALTHY else jax.jit(lambda x: jnp.tanh(x * 2.0).sum() + jnp.sin(x).mean())
    kept.append(f)
    return float(f(x))


x = jnp.ones((64, 64))
for i in range(100):
    score(x)
