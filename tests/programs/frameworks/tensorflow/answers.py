# truth: leak answer -; A server keeps each answer's vector under the number of its request
# truth(healthy): passes - -; it keeps the latest hundred
import collections
import sys
import tensorflow as tf

HEALTHY = "healthy" in sys.argv
weights = tf.random.normal((768, 768))
cache = collections.OrderedDict()


def answer(number):
    x = tf.random.normal((64, 768))
    cache[number] = tf.nn.relu(x @ weights)
    if HEALTHY and len(cache) > 100:
        cache.popitem(last=False)
    return float(cache[number][0, 0])


for request in range(600):
    answer(request)
