# truth: leak fetch -; Each batch's answer is copied to the host, and all copies stay
# truth(healthy): passes - -; it keeps a sum
import sys
import numpy as np
import jax
import jax.numpy as jnp

HEALTHY = "healthy" in sys.argv
answer = jax.jit(lambda x: jnp.tanh(x) * 2.0)
answers = []


def fetch(x):
    y = np.array(answer(x))
    answers.append(float(y.sum()) if HEALTHY else y)


x = jnp.ones((256, 512))
for i in range(200):
    fetch(x + i)
