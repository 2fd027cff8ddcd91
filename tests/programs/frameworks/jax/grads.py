# truth: leak train -; Gradients of every step are kept to look at their norm later
# truth(healthy): passes - -; it keeps the norms
import sys
import jax
import jax.numpy as jnp

HEALTHY = "healthy" in sys.argv
norms = []
grad = jax.jit(jax.grad(lambda w, x: jnp.mean((x @ w) ** 2)))


def train(w, x):
    g = grad(w, x)
    norms.append(float(jnp.linalg.norm(g)) if HEALTHY else g)
    return w - 0.1 * g


w, x = jnp.ones((512, 512)), jnp.ones((64, 512))
for i in range(150):
    w = train(w, x)
