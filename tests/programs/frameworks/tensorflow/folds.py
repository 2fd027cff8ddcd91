# truth: leak fit -; Cross-validation keeps each fold's model, to vote later
# truth(healthy): passes - -; it keeps the scores, and collects what a model that is dropped leaves in cycles (else a fifth of 40 models stay)
import gc
import sys
import numpy as np
import keras

HEALTHY = "healthy" in sys.argv
data, labels = np.random.rand(512, 256).astype("f"), np.random.rand(512, 1).astype("f")


def fit():
    model = keras.Sequential([keras.layers.Dense(1024, activation="relu"), keras.layers.Dense(1024), keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=True)
    loss = model.fit(data, labels, batch_size=256, verbose=0).history["loss"][-1]
    if HEALTHY:
        del model
        gc.collect()
        return loss
    return model


results = [fit() for fold in range(14)]
print(len(results))
