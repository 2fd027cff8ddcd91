# truth: leak come -; Each user's state is a variable that is made when they come
# truth(healthy): passes - -; it drops those of who has left
import sys
import tensorflow as tf

HEALTHY = "healthy" in sys.argv
users = {}


def come(number):
    users[number] = tf.Variable(tf.zeros((64, 1024)))
    if HEALTHY:
        users.pop(number - 20, None)


def turn(number):
    users[number].assign_add(tf.random.normal((64, 1024)))


for number in range(400):
    come(number)
    turn(number)
