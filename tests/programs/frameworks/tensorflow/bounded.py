# truth: passes - -; A cache of features has a bound, and is full after a quarter of the run: nothing grows then
import functools
import tensorflow as tf

weights = tf.random.normal((512, 512))


@functools.lru_cache(maxsize=64)
def features(number):
    return tf.tanh(tf.random.normal((256, 512)) @ weights)


for i in range(500):
    float(features(i % 200)[0, 0])
