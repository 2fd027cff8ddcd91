# truth: passes - -; A scan stacks the states of all its steps, which is the peak
# peak: unroll
# truth(healthy): passes - -; it keeps the last
import sys
import jax
import jax.numpy as jnp

HEALTHY = "healthy" in sys.argv


@jax.jit
def run(x):
    def step(state, _):
        state = jnp.tanh(state @ state * 0.01)
        return state, (state[0, 0] if HEALTHY else state)
    return jax.lax.scan(step, x, None, length=100)


def unroll(x):
    last, states = run(x)
    return float(states.sum() + last.sum())


x = jnp.ones((400, 400))
for i in range(10):
    unroll(x * i)
