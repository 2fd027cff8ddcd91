# truth: leak read -; A reader enqueues three batches for each that the training takes
# truth(healthy): passes - -; it one
import sys
import tensorflow as tf

HEALTHY = "healthy" in sys.argv
queue = tf.queue.FIFOQueue(100000, [tf.float32])
total = 0.0


def read():
    for _ in range(1 if HEALTHY else 3):
        queue.enqueue(tf.random.normal((128, 512)))


def train():
    return float(tf.reduce_mean(tf.square(queue.dequeue())))


for step in range(250):
    read()
    total += train()
