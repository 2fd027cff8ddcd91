# truth: leak main -; Texts of any length, and a function that is compiled for each
# truth(healthy): passes - -; it pads them
import sys
import jax
import jax.numpy as jnp

HEALTHY = "healthy" in sys.argv


@jax.jit
def step(x):
    for _ in range(6):
        x = jnp.tanh(x * 1.01) + 1.0
    return x.mean()


def main():
    total = 0.0
    for n in range(100):
        total += float(step(jnp.ones((8, 256 if HEALTHY else 10 + n))))
    print(total)


main()
