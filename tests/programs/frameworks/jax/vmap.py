# truth: passes - -; A distance of each to each is a step's peak, 64 MiB, and given back: no leak
import jax
import jax.numpy as jnp

far = jax.jit(jax.vmap(jax.vmap(lambda a, b: jnp.sum((a - b) ** 2), (None, 0)), (0, None)))
x = jnp.ones((1024, 16))
for i in range(30):
    float(far(x, x * i).max())
