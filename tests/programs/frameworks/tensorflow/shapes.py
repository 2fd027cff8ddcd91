# truth: leak main -; Texts of any length, and a tf.function that is traced for each
# truth(healthy): passes - -; it says that the length is free
import sys
import tensorflow as tf

HEALTHY = "healthy" in sys.argv


def body(x):
    for _ in range(12):
        x = tf.tanh(x * 1.01) + 1.0
    return tf.reduce_mean(x)


step = tf.function(body, input_signature=[tf.TensorSpec((8, None))] if HEALTHY else None, reduce_retracing=False)


def main():
    total = 0.0
    for i in range(250):
        total += float(step(tf.ones((8, 10 + i))))
    print(total)


main()
