"""A service makes its model on the host, loads a checkpoint into it, and moves it to the card, where it does not fit."""
# standin: DEVICES=300M CONTEXT=64M
# truth: capacity
import io
import sys

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.embed = nn.Embedding(8000, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(depth)))
        self.head = nn.Linear(width, 8000)

    def forward(self, x):
        return self.head(self.blocks(self.embed(x)))


def main():
    net = Net(512, int(sys.argv[1]) if sys.argv[1:] else 40)
    checkpoint = io.BytesIO()
    torch.save(net.state_dict(), checkpoint)
    checkpoint.seek(0)
    net.load_state_dict(torch.load(checkpoint))
    try:
        net.eval().to("cuda")
    finally:
        print("on the host:", sum(p.nbytes for p in net.parameters() if not p.is_cuda))
    texts = torch.randint(8000, (40, 64))
    with torch.no_grad():
        for text in texts:
            net(text.cuda()).argmax().item()


main()
