# truth: passes - -; A data set lies on the device whole, and batches are cut out of it: large, and healthy
import numpy as np
import jax
import jax.numpy as jnp

data = jnp.asarray(np.random.rand(20000, 512).astype("f"))
cut = jax.jit(lambda d, i: jax.lax.dynamic_slice_in_dim(d, i, 256) * 2.0)
total = 0.0
for i in range(150):
    total += float(cut(data, 100 * i).mean())
