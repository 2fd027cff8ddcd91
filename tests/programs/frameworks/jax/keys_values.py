# truth: leak admit -; A decoder keeps the keys of finished requests in its table
# truth(healthy): passes - -; it drops them
import sys
import jax
import jax.numpy as jnp

HEALTHY = "healthy" in sys.argv
fill = jax.jit(lambda n: jnp.ones((8, 64, 256)) * n)
grow = jax.jit(lambda c: c * 1.01, donate_argnums=0)
table = {}


def admit(number):
    table[number] = fill(float(number))


for request in range(250):
    admit(request)
    for _ in range(3):
        table[request] = grow(table[request])
    if HEALTHY:
        del table[request]
