"""A language model that is trained on longer and longer texts, until the device has no more memory for one: what
`make demo-gpu` runs.

    memtrace run -- python examples/train_gpu.py
"""
import torch
import torch.nn as nn

WIDTH, LAYERS, WORDS, BATCH = 512, 6, 16000, 8


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, batch_first=True) for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, text):
        hidden = self.words(text)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(hidden)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = Model().to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    total = torch.cuda.get_device_properties(device).total_memory
    print("%s with %.2f GiB" % (torch.cuda.get_device_name(device), total / 2**30))
    step, length = 0, 32
    while True:
        text = torch.zeros(BATCH, length, dtype=torch.long, device=device)
        loss = nn.functional.cross_entropy(model(text).flatten(0, 1), text.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 10 == 0:
            print("step %3d  %4d words  %7.1f MiB at most" % (step, length, torch.cuda.max_memory_allocated() / 2**20))
            length += length // 2


if __name__ == "__main__":
    main()
