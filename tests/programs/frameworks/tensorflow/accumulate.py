# truth: passes - -; Gradients of sixteen batches are added up, applied and dropped: nothing stays
import tensorflow as tf

weights = [tf.Variable(tf.random.normal((512, 512)) * 0.05) for _ in range(3)]
for epoch in range(12):
    grads = []
    for _ in range(16):
        with tf.GradientTape() as tape:
            y = tf.random.normal((64, 512))
            for w in weights:
                y = tf.tanh(y @ w)
            loss = tf.reduce_mean(y)
        grads.append(tape.gradient(loss, weights))
    for i, w in enumerate(weights):
        w.assign_sub(0.1 * tf.add_n([g[i] for g in grads]))
