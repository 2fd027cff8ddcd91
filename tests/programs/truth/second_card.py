"""A teacher and its student on the first of two cards: the second one is as good as empty"""
# standin: DEVICES=880M,880M CONTEXT=64M
# truth: capacity
import sys
import torch

TEACHER = "cuda:1" if "twin" in sys.argv or "second" in sys.argv else "cuda:0"


def tower(device):
    return torch.nn.Sequential(*[torch.nn.Linear(2048, 2048, device=device) for _ in range(16)])


def main():
    scores = torch.zeros(100, device="cuda:1")
    teacher, student = tower(TEACHER), tower("cuda:0")
    optimizer = torch.optim.SGD(student.parameters(), lr=0.01)
    for step in range(12):
        batch = torch.randn(64, 2048)
        with torch.no_grad():
            wanted = teacher(batch.to(TEACHER)).to("cuda:0")
        loss = (student(batch.to("cuda:0")) - wanted).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        scores[step] = loss.detach()
        print("step", step, flush=True)


main()
