# truth: leak <module> -; Rows of predictions are kept as numpy arrays, which are views of whole batches: of the copies that numpy() makes
# truth(healthy): passes - -; it copies the row
import sys
import tensorflow as tf

HEALTHY = "healthy" in sys.argv
weights = tf.random.normal((256, 1000))
best = []


def predict(x):
    return tf.nn.softmax(x @ weights)


for batch in range(200):
    rows = predict(tf.random.normal((256, 256))).numpy()
    best.append(rows[0].copy() if HEALTHY else rows[0])
