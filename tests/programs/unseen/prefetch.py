"""A thread prepares batches on the card, ahead of the training that takes them from a queue. The queue has no bound, and training is slower.

truth: leak|backlog|grows of prepare. Batches of 192 MiB that wait pile up.
helps: Queue(maxsize=4) (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import queue
import sys
import threading
import time
import torch

batches = queue.Queue(4 if "healthy" in sys.argv else 0)


def prepare():
    stream = torch.cuda.Stream()
    try:
        for number in range(600):
            with torch.cuda.stream(stream):
                images = torch.randint(0, 256, (64, 3, 512, 512), dtype=torch.uint8, device="cuda")
                batch = images.float().div_(255)
            ready = stream.record_event()
            time.sleep(0.002)
            batches.put((batch, ready))
    finally:
        batches.put(None)


def train():
    weights = torch.randn(3, 3, device="cuda", requires_grad=True)
    while (item := batches.get()) is not None:
        batch, ready = item
        torch.cuda.current_stream().wait_event(ready)
        batch.record_stream(torch.cuda.current_stream())
        loss = (weights @ batch.transpose(0, 1).flatten(1)).square().mean()
        loss.backward()
        weights.grad = None
        time.sleep(0.012)


thread = threading.Thread(target=prepare, daemon=True)
thread.start()
train()
print("done")
