# truth: leak __init__ 25.0M; a bus keeps a bound method of each session, and nobody unsubscribes
# pauses: 0 0.002
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))
bus = []


class Session:
    def __init__(self):
        self.buffer = bytearray(50_000)

    def changed(self, event):
        return event


def subscribe():
    session = Session()
    bus.append(session.changed)


for request in range(500):
    subscribe()
    reply = [bytearray(30_000) for _ in range(8)]
    time.sleep(PAUSE)
