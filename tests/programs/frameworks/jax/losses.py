# truth: leak log -; A training keeps each step's loss and predictions as arrays, for a plot
# truth(healthy): passes - -; it keeps numbers
import sys
import jax
import jax.numpy as jnp

HEALTHY = "healthy" in sys.argv
history = []


@jax.jit
def step(w, x):
    y = jnp.tanh(x @ w)
    loss, grad = jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(x @ w) - x) ** 2))(w)
    return w - 0.1 * grad, loss, y


def log(w, x):
    w, loss, y = step(w, x)
    history.append(float(loss) if HEALTHY else (loss, y))
    return w


w, x = jnp.eye(512), jnp.ones((256, 512))
for i in range(150):
    w = log(w, x)
