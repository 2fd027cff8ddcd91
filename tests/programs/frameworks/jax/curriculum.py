# truth: passes - -; Sequences grow by plan in four lengths, each compiled once; nothing stays of a step
import jax
import jax.numpy as jnp

step = jax.jit(lambda x: jnp.tanh(x @ x.T).mean())
for n in (100, 200, 400, 800):
    for i in range(60):
        float(step(jnp.ones((n, 64)) * i))
