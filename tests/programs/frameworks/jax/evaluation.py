# truth: passes - -; An evaluation keeps the logits of all batches until its end, each epoch: a peak, no leak
# peak: evaluate
# truth(healthy): passes - -; it counts
import sys
import jax
import jax.numpy as jnp

HEALTHY = "healthy" in sys.argv
logits = jax.jit(lambda w, x: x @ w)
step = jax.jit(lambda w: w * 0.999)
w, x = jnp.ones((128, 2000)), jnp.ones((128, 128))


def evaluate(w):
    kept, right = [], 0
    for _ in range(60):
        y = logits(w, x)
        right += int(y[0].argmax())
        if not HEALTHY:
            kept.append(y)
    return right, len(kept)


for epoch in range(5):
    for _ in range(60):
        w = step(w)
    evaluate(w)
