"""A serving engine with pages of a KV cache: beams share their prompt's pages by a count of users, and a beam that is dropped forgets to count down"""
# standin: DEVICES=900M CONTEXT=64M
# truth: leak pages.py allocate
import sys
import torch

COUNT_DOWN = "twin" in sys.argv or "release" in sys.argv


class Page:
    def __init__(self):
        self.block, self.users = allocate(), 1


def allocate():
    return torch.empty(2, 16, 32, 128, device="cuda")


live = set()


def release(pages):
    for page in pages:
        page.users -= 1
        if page.users == 0:
            live.discard(page)


@torch.no_grad()
def generate(request):
    prompt = [Page() for _ in range(4 + request % 3)]
    live.update(prompt)
    beams = [list(prompt) for _ in range(4)]
    for page in prompt:
        page.users = 4
    for token in range(24):
        for number, beam in enumerate(beams):
            if token % 8 == 0:
                beam.append(Page())
                live.add(beam[-1])
            torch.softmax(torch.zeros(32, 16 * len(beam), device="cuda"), dim=1)
        if token == 12 and request % 4 == 0:
            dropped = beams.pop()
            if COUNT_DOWN:
                release(dropped)
    for beam in beams:
        release(beam)


for request in range(800):
    generate(request)
    print("request", request, flush=True)
