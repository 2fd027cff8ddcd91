# truth: passes - -; A convolution's batch is eight times as large in one step of the run: a peak of its own, no leak
import tensorflow as tf

weights = tf.random.normal((3, 3, 16, 32))
for step in range(80):
    x = tf.random.normal((64 if step == 40 else 8, 32, 32, 16))
    float(tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(x, weights, 1, "SAME"))))
