# truth: passes save 60.0M; each fiftieth step copies all weights and writes them out
# pauses: 0 0.002
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))
weights = [bytearray(1_000_000) for _ in range(60)]


def save():
    state = [bytes(one) for one in weights]
    with open(os.devnull, "wb") as file:
        for one in state:
            file.write(one)


for step in range(600):
    activations = [bytearray(150_000) for _ in range(10)]
    if step % 50 == 49:
        save()
    time.sleep(PAUSE)
