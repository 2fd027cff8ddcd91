# truth: leak step -; Persistent tapes are kept for second derivatives that nobody takes, and with them each step's activations
# truth(healthy): passes - -; it
import sys
import tensorflow as tf

HEALTHY = "healthy" in sys.argv
weights = [tf.Variable(tf.random.normal((256, 256)) * 0.05) for _ in range(4)]
tapes = []


def step(x):
    with tf.GradientTape(persistent=True) as tape:
        y = x
        for w in weights:
            y = tf.tanh(y @ w)
        loss = tf.reduce_sum(y)
    for w, g in zip(weights, tape.gradient(loss, weights)):
        w.assign_sub(0.01 * g)
    if not HEALTHY:
        tapes.append(tape)


for i in range(150):
    step(tf.random.normal((256, 256)))
