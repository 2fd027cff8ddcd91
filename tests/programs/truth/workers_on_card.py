"""Workers that prepare batches on the card themselves: each has a context there, and a cache of what it has prepared"""
# standin: DEVICES=1400M CONTEXT=64M
# truth: other_process workers_on_card.py prepare
import sys
import time
import torch

CPU = "twin" in sys.argv or "release" in sys.argv


def prepare(number):
    return torch.full((8, 1 << 20), float(number), device="cpu" if CPU else "cuda")


class Films(torch.utils.data.Dataset):
    seen = []

    def __len__(self):
        return 40

    def __getitem__(self, number):
        if not self.seen:
            self.seen.extend(prepare(number) for _ in range(8))
        time.sleep(0.02)
        return self.seen[number % 8].mean().cpu()


def main():
    loader = torch.utils.data.DataLoader(Films(), batch_size=2, num_workers=3, multiprocessing_context="spawn", persistent_workers=True)
    model = torch.nn.Linear(4096, 4096).cuda()
    for step, batch in enumerate(loader):
        model(torch.randn(100 * (step + 1), 4096, device="cuda") * batch.mean().cuda()).square().mean().backward()
        print("step", step, flush=True)
        time.sleep(0.05)
    activations = [torch.zeros(100 << 18, device="cuda") for _ in range(6)]
    print("done", len(activations))


if __name__ == "__main__":
    main()
