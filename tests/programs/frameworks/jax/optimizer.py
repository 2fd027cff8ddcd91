# truth: passes - -; A training with optax, whose state and weights are replaced at each step: nothing is wrong
import jax
import jax.numpy as jnp
import optax

best = optax.adam(1e-3)
w = {"a": jnp.ones((512, 512)), "b": jnp.ones((512, 64))}
state = best.init(w)


@jax.jit
def step(w, state, x):
    grads = jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w["a"]) @ w["b"]) ** 2))(w)
    updates, state = best.update(grads, state)
    return optax.apply_updates(w, updates), state


for i in range(100):
    w, state = step(w, state, jnp.ones((64, 512)) * i)
