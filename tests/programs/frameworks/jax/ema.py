# truth: passes - -; A moving average beside the weights, replaced at each step: two sets, healthy
import jax
import jax.numpy as jnp

@jax.jit
def step(w, average):
    w = jax.tree.map(lambda a: a * 0.99 + 0.01, w)
    return w, jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, average, w)


w = [jnp.ones((512, 512)) for _ in range(4)]
average = [jnp.ones((512, 512)) for _ in range(4)]
for i in range(150):
    w, average = step(w, average)
