# truth: leak teach -; A teacher's outputs for every batch are kept for the student's epochs, of which there is one
# truth(healthy): passes - -; it asks each time
import sys
import tensorflow as tf

HEALTHY = "healthy" in sys.argv
teacher, student = (tf.keras.layers.Dense(1000) for _ in range(2))
optimizer, outputs = tf.keras.optimizers.SGD(0.01), {}


def teach(number, x):
    y = tf.nn.softmax(teacher(x))
    if not HEALTHY:
        outputs[number] = y
    return y


for step in range(200):
    x = tf.random.normal((128, 64))
    y = teach(step, x)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.softmax(student(x)) - y))
    optimizer.apply_gradients(zip(tape.gradient(loss, student.trainable_variables), student.trainable_variables))
