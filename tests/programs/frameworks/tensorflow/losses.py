# truth: leak log -; A loop of its own keeps each batch's loss and prediction for a plot
# truth(healthy): passes - -; it keeps numbers
import sys
import tensorflow as tf

HEALTHY = "healthy" in sys.argv
model = tf.keras.Sequential([tf.keras.layers.Dense(512, activation="relu"), tf.keras.layers.Dense(512)])
optimizer = tf.keras.optimizers.SGD(0.01)
history = []


def log(x, loss):
    history.append(float(loss) if HEALTHY else (loss, x * 1.0))


for step in range(120):
    x = tf.random.normal((256, 512))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - x))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    log(x, loss)
