"""Three workers that were forked before CUDA began index documents on the card, and wait for more work; the trainer beside them has no room.

truth: other_process. Three workers of the program's own hold 17 GiB each, and the training needs 40 of 79.
helps: one worker (healthy), or workers that end before the training.
"""
# standin: DEVICES=79G CONTEXT=520M
import os
import sys
import torch

WORKERS = 1 if "healthy" in sys.argv else 3


def work(go, done):
    documents = [torch.ones(4096, 65536, device="cuda") for _ in range(16)]
    torch.cuda.synchronize()
    os.write(done, b"x")
    os.read(go, 1)
    del documents


def main():
    go, go_in = os.pipe()
    done, done_in = os.pipe()
    for _ in range(WORKERS):
        if os.fork() == 0:
            os.close(go_in)
            work(go, done_in)
            os._exit(0)
    os.close(go)
    for _ in range(WORKERS):
        os.read(done, 1)
    layers = [torch.nn.Linear(16384, 16384, device="cuda") for _ in range(10)]
    optimizer = torch.optim.Adam([p for layer in layers for p in layer.parameters()])
    for step in range(4):
        x = torch.ones(64, 16384, device="cuda")
        for layer in layers:
            x = layer(x).tanh()
        optimizer.zero_grad()
        x.mean().backward()
        optimizer.step()
        print("step", step, flush=True)
    os.close(go_in)
    for _ in range(WORKERS):
        os.wait()


main()
print("done")
