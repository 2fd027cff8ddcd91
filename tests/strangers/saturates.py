# truth: stopped thumbnail 20.0M; a dict by key: 400 keys exist, asked for at random, and all are known by the middle of the run
# pauses: 0 0.0005
# short
import os
import random
import time

PAUSE = float(os.environ.get("PAUSE", 0))
random.seed(11)
thumbnails = {}


def thumbnail(key):
    if key not in thumbnails:
        thumbnails[key] = bytearray(50_000)
    return thumbnails[key]


for request in range(6000):
    thumbnail(random.randrange(400))
    picture = bytearray(120_000)
    time.sleep(PAUSE)
