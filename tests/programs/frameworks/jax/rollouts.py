# truth: leak act -; An agent's buffer of states is never cleared after an update
# truth(healthy): passes - -; it clears it
import sys
import jax
import jax.numpy as jnp

HEALTHY = "healthy" in sys.argv
policy = jax.jit(lambda w, s: jnp.tanh(s @ w))
w, s, buffer = jnp.eye(256), jnp.ones((256, 256)), []


def act(s):
    s = policy(w, s)
    buffer.append(s)
    return s


for update in range(25):
    for _ in range(20):
        s = act(s + 0.01)
    w = w * 0.999
    if HEALTHY:
        buffer.clear()
