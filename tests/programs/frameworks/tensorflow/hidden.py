# truth: leak advance -; A cell is unrolled by hand over a stream, and each state is kept
# truth(healthy): passes - -; it keeps the latest
import sys
import tensorflow as tf

HEALTHY = "healthy" in sys.argv
cell = tf.keras.layers.GRUCell(512)
states = [tf.zeros((128, 512))]


def advance(x):
    y, state = cell(x, states[-1])
    states.append(state[0] if isinstance(state, (list, tuple)) else state)
    if HEALTHY:
        del states[0]


for i in range(400):
    advance(tf.random.normal((128, 64)))
