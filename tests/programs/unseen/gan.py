"""A GAN shows its discriminator older fakes, too: a history of up to a hundred, as in CycleGAN. They were stored with the generator's graph.

truth: leak of generator. retain_graph keeps each fake's graph, 1.1 GiB, for as long as the fake is in the history.
helps: detach() what goes into the history (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import random
import sys
import torch
from torch import nn

HEALTHY = "healthy" in sys.argv
random.seed(5)


def block(before, after):
    return nn.Sequential(nn.Linear(before, after, device="cuda"), nn.LeakyReLU(0.2))


generator = nn.Sequential(block(128, 1024), block(1024, 1024), block(1024, 1024), nn.Linear(1024, 784, device="cuda"))
discriminator = nn.Sequential(block(784, 256), nn.Linear(256, 1, device="cuda"))
g_opt, d_opt = (torch.optim.Adam(net.parameters(), lr=2e-4) for net in (generator, discriminator))
history = []


def train_step():
    fake = generator(torch.randn(45000, 128, device="cuda"))
    g_loss = -discriminator(fake).mean()
    g_opt.zero_grad()
    g_loss.backward(retain_graph=True)
    g_opt.step()
    if len(history) == 100:
        history.pop(random.randrange(100))
    history.append(fake.detach() if HEALTHY else fake)
    shown = random.choice(history).detach()
    real = torch.randn(45000, 784, device="cuda")
    d_loss = discriminator(shown).mean() - discriminator(real).mean()
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()


for step in range(150):
    train_step()
    print("step", step, flush=True)
print("done")
