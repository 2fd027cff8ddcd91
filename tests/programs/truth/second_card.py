"""A teacher and its student on the first of two cards, which are both there: the second one is empty"""
# standin: DEVICES=1000M,1000M CONTEXT=64M
# truth: capacity
import sys
import torch

TEACHER = "cuda:1" if "twin" in sys.argv or "second" in sys.argv else "cuda:0"


def tower(device):
    return torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(16)]).to(device)


def main():
    torch.zeros(1, device="cuda:1")
    teacher, student = tower(TEACHER), tower("cuda:0")
    optimizer = torch.optim.SGD(student.parameters(), lr=0.01)
    for step in range(40):
        batch = torch.randn(8 * (step + 1), 2048)
        with torch.no_grad():
            wanted = teacher(batch.to(TEACHER)).to("cuda:0")
        loss = (student(batch.to("cuda:0")) - wanted).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("step", step, flush=True)


main()
