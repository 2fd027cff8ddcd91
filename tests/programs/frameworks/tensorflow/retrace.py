# truth: leak main -; A tf.function is called with the step's number as a Python int, so each step traces it anew
# truth(healthy): passes - -; it
import sys
import tensorflow as tf

HEALTHY = "healthy" in sys.argv


@tf.function(reduce_retracing=False)
def step(x, n):
    for _ in range(12):
        x = tf.tanh(x * 1.01) + tf.cast(n, tf.float32)
    return tf.reduce_mean(x)


def main():
    x = tf.ones((64, 64))
    total = 0.0
    for i in range(250):
        total += float(step(x, tf.constant(i) if HEALTHY else i))
    print(total)


main()
