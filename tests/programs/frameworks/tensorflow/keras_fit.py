# truth: passes - -; A Keras training with validation, a dataset that is shuffled and prefetched, and an early stop: nothing is wrong
import numpy as np
import keras
import tensorflow as tf

data = np.random.rand(4096, 128).astype("f")
pairs = tf.data.Dataset.from_tensor_slices((data, data)).shuffle(4096).batch(128).prefetch(2)
model = keras.Sequential([keras.layers.Dense(512, activation="relu"), keras.layers.Dense(128)])
model.compile("adam", "mse")
model.fit(pairs, validation_data=pairs.take(4), epochs=6, verbose=0, callbacks=[keras.callbacks.EarlyStopping(patience=10)])
