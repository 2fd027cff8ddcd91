"""A GAN whose discriminator begins at step 30; the generator is warmed up first. Adam's state of the discriminator is made then, and does not fit.

truth: capacity. The discriminator's state is 30 GiB, of which 12.75 are missing when it fails. The generator's is complete.
helps: SGD for it (healthy).
"""
# standin: DEVICES=60G CONTEXT=520M
import sys
import torch
from torch import nn

HEALTHY = "healthy" in sys.argv


def net(layers):
    return nn.Sequential(*[nn.Sequential(nn.Linear(8192, 8192, bias=False, device="cuda"), nn.LeakyReLU(0.2)) for _ in range(layers)])


generator, discriminator = net(12), net(60)
g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-4)
d_optimizer = (torch.optim.SGD if HEALTHY else torch.optim.Adam)(discriminator.parameters(), lr=1e-4)
for step in range(50):
    z, real = torch.randn(512, 8192, device="cuda"), torch.randn(512, 8192, device="cuda")
    fake = generator(z)
    loss = (fake - real).pow(2).mean()
    g_optimizer.zero_grad()
    loss.backward()
    g_optimizer.step()
    if step >= 30:
        d_loss = discriminator(fake.detach()).mean() - discriminator(real).mean()
        d_optimizer.zero_grad()
        d_loss.backward()
        d_optimizer.step()
    print("step", step, flush=True)
print("done")
