"""Nothing is wrong: a student, a teacher of the same shape, a moving average of the student, and tied embeddings fill the card.

Adam's states and gradients have the weights' sizes as well.
"""
# standin: DEVICES=1024M CONTEXT=64M
# cause: none
import copy

import torch
from torch import nn

import trial

STEPS, WIDTH, WORDS = 30, 768, 14000


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(6)), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH),
                                    nn.Linear(3 * WIDTH, WIDTH))
        self.out = nn.Linear(WIDTH, WORDS, bias=False)
        self.out.weight = self.words.weight

    def forward(self, words):
        return self.out(self.layers(self.words(words)))


def main():
    student = Reader().cuda()
    teacher = copy.deepcopy(student).requires_grad_(False)
    average = torch.optim.swa_utils.AveragedModel(student)
    optimizer = torch.optim.Adam(student.parameters())
    for _ in trial.units(STEPS):
        words = torch.zeros(1100, dtype=torch.long, device="cuda")
        with torch.no_grad():
            wanted = teacher(words)
        (student(words) - wanted).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        average.update_parameters(student)


main()
