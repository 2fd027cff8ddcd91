"""Three lines, one for each batch that is tried: what the attempts that failed have made stays with their exceptions"""
# standin: DEVICES=1200M CONTEXT=64M
# truth: leak halves_lines.py score
import sys
import torch

RELEASE = "twin" in sys.argv or "release" in sys.argv
SIZES = [7 << 17, 3 << 17, 9 << 16, 5 << 17, 11 << 16, 1 << 19, 13 << 15, 5 << 16]
errors = []


def score(batch):
    hidden = []
    for size in SIZES:
        hidden.append(torch.empty(batch * size, dtype=torch.uint8, device="cuda"))
    attention = torch.empty(batch * (13 << 20), dtype=torch.uint8, device="cuda")
    return hidden, attention


def keep(error):
    errors.append(str(error) if RELEASE else error)


def main():
    weights = torch.empty(250 << 20, dtype=torch.uint8, device="cuda")
    try:
        return score(96)
    except torch.OutOfMemoryError as error:
        keep(error)
    try:
        return score(48)
    except torch.OutOfMemoryError as error:
        keep(error)
    return score(40), weights


main()
