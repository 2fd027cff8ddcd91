# truth: passes - -; A state is donated to each step, which gives it back: one is alive at a time
# truth(healthy): passes - -; it is not donated, and none stays either
import sys
import jax
import jax.numpy as jnp

HEALTHY = "healthy" in sys.argv


def body(state):
    return state @ state * 0.002 + 1.0


step = jax.jit(body, donate_argnums=() if HEALTHY else 0)
state = jnp.ones((512, 512))
for i in range(150):
    state = step(state)
state.block_until_ready()
