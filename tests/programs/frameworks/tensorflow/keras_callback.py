# truth: leak on_train_batch_end -; A callback keeps each batch's outputs of a layer to draw them at the end
# truth(healthy): passes - -; it keeps their mean
import sys
import numpy as np
import keras
import tensorflow as tf

HEALTHY = "healthy" in sys.argv
data, kept = np.random.rand(2048, 64).astype("f"), []


class Watch(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        y = self.model.layers[0](data[:1024])
        kept.append(float(tf.reduce_mean(y)) if HEALTHY else y)


model = keras.Sequential([keras.layers.Dense(256, activation="relu"), keras.layers.Dense(64)])
model.compile("adam", "mse")
model.fit(data, data, epochs=4, batch_size=32, verbose=0, callbacks=[Watch()])
