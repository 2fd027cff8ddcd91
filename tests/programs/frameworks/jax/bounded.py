# truth: passes - -; A cache of features has a bound, and is full early: nothing grows then
import functools
import jax
import jax.numpy as jnp

f = jax.jit(lambda i: jnp.tanh(jnp.ones((256, 512)) * i))


@functools.lru_cache(maxsize=50)
def features(number):
    return f(float(number))


for i in range(500):
    float(features(i % 170)[0, 0])
