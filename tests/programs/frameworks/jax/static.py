# truth: leak main -; The step's number is a static argument, so each step is compiled
# truth(healthy): passes - -; it passes it as an array
import sys
import jax
import jax.numpy as jnp

HEALTHY = "healthy" in sys.argv


def body(x, n):
    for _ in range(6):
        x = jnp.tanh(x * 1.01) + n
    return x.mean()


step = jax.jit(body) if HEALTHY else jax.jit(body, static_argnums=1)


def main():
    x = jnp.ones((64, 64))
    total = 0.0
    for i in range(100):
        total += float(step(x, i))
    print(total)


main()
