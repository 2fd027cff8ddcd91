# truth: passes - -; Text is generated token by token with a cache of keys that is given back at each text's end
import tensorflow as tf

weights = tf.random.normal((256, 256)) * 0.05
for text in range(25):
    keys, x = [], tf.random.normal((16, 256))
    for token in range(40):
        keys.append(x @ weights)
        seen = tf.stack(keys, 1)
        x = tf.einsum("bt,btd->bd", tf.nn.softmax(tf.einsum("bd,btd->bt", x, seen)), seen)
