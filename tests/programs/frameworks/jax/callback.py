# truth: leak receive -; Values are sent to the host by io_callback and stay in a list there
# truth(healthy): passes - -; it counts them
import sys
import numpy as np
import jax
import jax.numpy as jnp

HEALTHY = "healthy" in sys.argv
received = []


def receive(x):
    received.append(float(x[0, 0]) if HEALTHY else np.array(x))
    return np.int32(0)


@jax.jit
def step(x):
    jax.experimental.io_callback(receive, jax.ShapeDtypeStruct((), jnp.int32), x, ordered=True)
    return jnp.tanh(x)


x = jnp.ones((256, 512))
for i in range(150):
    x = step(x)
x.block_until_ready()
