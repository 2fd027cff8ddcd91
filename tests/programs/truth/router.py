"""A mixture of experts whose router sends more and more tokens to its first expert, which pads all of them to the longest list"""
# standin: DEVICES=1200M CONTEXT=64M
# truth: capacity
import sys
import torch

EXPERTS, TOKENS, WIDTH = 8, 16000, 512
EVEN = "twin" in sys.argv


def main():
    experts = torch.nn.ModuleList([torch.nn.Linear(WIDTH, 1024) for _ in range(EXPERTS)]).cuda()
    optimizer = torch.optim.SGD(experts.parameters(), lr=0.01)
    for step in range(200):
        share = 1 / EXPERTS if EVEN else min(1.0, 1 / EXPERTS + step * 0.004)
        first = int(TOKENS * share)
        rest = (TOKENS - first) // (EXPERTS - 1)
        capacity = max(first, rest)
        loss = 0
        for number, expert in enumerate(experts):
            tokens = torch.zeros(capacity, WIDTH, device="cuda")
            tokens[:first if number == 0 else rest] = 1
            loss = loss + torch.relu(expert(tokens)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("step", step, flush=True)


main()
