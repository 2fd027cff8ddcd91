# truth: leak - -; The weights of each epoch are copied into a list, of which the last five are averaged; what they share is made anew by fit()
# truth(healthy): passes - -; it keeps five
import sys
import numpy as np
import keras
import tensorflow as tf

HEALTHY = "healthy" in sys.argv
data = np.random.rand(256, 512).astype("f")
copies = []


def remember(model):
    copies.append([tf.identity(v) for v in model.trainable_variables])
    if HEALTHY:
        del copies[:-5]


model = keras.Sequential([keras.layers.Dense(1024, activation="relu"), keras.layers.Dense(512)])
model.compile("sgd", "mse")
for epoch in range(60):
    model.fit(data, data, batch_size=128, verbose=0)
    remember(model)
