# truth: passes - -; An evaluation keeps the logits of all batches until its end: its peak, and no leak
# peak: evaluate
# truth(healthy): passes - -; it counts as it goes
import sys
import tensorflow as tf

HEALTHY = "healthy" in sys.argv
weights = tf.Variable(tf.random.normal((128, 2000)) * 0.1)


def train():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.random.normal((128, 128)) @ weights))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))


def evaluate():
    logits, right = [], 0
    for _ in range(60):
        y = tf.random.normal((128, 128)) @ weights
        right += int(tf.argmax(y, 1)[0] == 0)
        if not HEALTHY:
            logits.append(y)
    return right, len(logits)


for epoch in range(4):
    for _ in range(60):
        train()
    evaluate()
