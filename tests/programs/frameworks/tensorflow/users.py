# truth: leak seen -; A mutable table of embeddings has a row for each user that ever came
# truth(healthy): passes - -; it removes who has left
import sys
import tensorflow as tf

HEALTHY = "healthy" in sys.argv
table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, tf.zeros(256))


def seen(first):
    users = tf.range(first, first + 500, dtype=tf.int64)
    table.insert(users, tf.random.normal((500, 256)))
    if HEALTHY and first >= 5000:
        table.remove(users - 5000)


for i in range(200):
    seen(500 * i)
print(int(table.size()))
