# truth: leak fit -; Each fold's parameters stay in the list of results
# truth(healthy): passes - -; it keeps scores
import sys
import jax
import jax.numpy as jnp

HEALTHY = "healthy" in sys.argv
step = jax.jit(lambda p: [a * 0.999 + 0.001 for a in p])


def fit(seed):
    p = [jnp.full((512, 512), float(seed)) for _ in range(3)]
    for _ in range(10):
        p = step(p)
    return float(p[0].sum()) if HEALTHY else p


results = [fit(seed) for seed in range(50)]
print(len(results))
