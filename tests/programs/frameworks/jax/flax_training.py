# truth: leak watch -; A Flax training keeps each step's outputs for a picture
# truth(healthy): passes - -; it keeps their mean
import sys
import jax
import jax.numpy as jnp
import flax.linen as nn
import optax

HEALTHY = "healthy" in sys.argv


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(256)(nn.relu(nn.Dense(512)(x)))


net, kept = Net(), []
x = jnp.ones((512, 64))
w = net.init(jax.random.key(0), x)
best = optax.sgd(0.01)
state = best.init(w)


@jax.jit
def step(w, state, x):
    grads, y = jax.grad(lambda w: (lambda y: (jnp.mean(y ** 2), y))(net.apply(w, x)), has_aux=True)(w)
    updates, state = best.update(grads, state)
    return optax.apply_updates(w, updates), state, y


def watch(w, state, i):
    w, state, y = step(w, state, x + i)
    kept.append(float(y.mean()) if HEALTHY else y)
    return w, state


for i in range(150):
    w, state = watch(w, state, i)
