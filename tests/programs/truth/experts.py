"""A mixture of many experts is served from the host: those that tokens ask for come to the card, and none ever leaves it"""
# standin: DEVICES=900M CONTEXT=64M
# truth: leak experts.py fetch
import sys
import torch

KEEP = 16 if "twin" in sys.argv or "release" in sys.argv else 10 ** 9
WIDTH = 768
on_host = [torch.zeros(WIDTH, 4 * WIDTH) for _ in range(2)]
on_card = {}


@torch.no_grad()
def fetch(number):
    if number not in on_card:
        while len(on_card) >= KEEP:
            del on_card[next(iter(on_card))]
        on_card[number] = on_host[number % 2].to("cuda")
    return on_card[number]


@torch.no_grad()
def answer(request):
    hidden = torch.zeros(256, WIDTH, device="cuda")
    for layer in range(2):
        chosen = (request * 2 + layer) % 128
        hidden = hidden + (torch.relu(hidden @ fetch(chosen)) @ fetch(chosen).T) / 2
    return hidden.sum()


for request in range(150):
    answer(request)
    print("request", request, flush=True)
