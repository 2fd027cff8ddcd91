# truth: passes - 0; twelve epochs; of each a dict of ten figures stays, some kilobytes in all
# pauses: 0 0.001
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))
weights = [bytearray(200_000) for _ in range(40)]
history = []


def train(epoch):
    losses = []
    for batch in range(120):
        activations = [bytearray(60_000) for _ in range(8)]
        losses.append(float(batch))
        del activations
        time.sleep(PAUSE)
    history.append({"figure%d" % k: sum(losses) / (k + 1) for k in range(10)})


for epoch in range(12):
    train(epoch)
