# truth: leak remember -; A copy of all parameters is kept at each epoch, as the best may be any
# truth(healthy): passes - -; it keeps the latest
import sys
import jax
import jax.numpy as jnp

HEALTHY = "healthy" in sys.argv
params = {"a": jnp.ones((512, 512)), "b": jnp.ones((512, 256)), "c": jnp.ones(512)}
best = []
step = jax.jit(lambda p: jax.tree.map(lambda a: a * 0.999 + 0.001, p))


def remember(p):
    best.append(jax.tree.map(jnp.copy, p))
    if HEALTHY:
        del best[:-1]


for epoch in range(80):
    for _ in range(5):
        params = step(params)
    remember(params)
