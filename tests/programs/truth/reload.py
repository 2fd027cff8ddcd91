"""A service loads the newest weights of its model from time to time; who watches for them is told of each model, and remembers it"""
# standin: DEVICES=900M CONTEXT=64M
# truth: leak reload.py load
import sys
import torch

REMEMBER = not ("twin" in sys.argv or "drop" in sys.argv)
watchers = []


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(n, n + 256) for n in (1024, 1280, 1536, 1792)])

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def load():
    model = Model().cuda()
    if REMEMBER:
        watchers.append(lambda: model)
    return model


@torch.no_grad()
def serve():
    model = None
    for request in range(400):
        if request % 10 == 0:
            model = load()
        model(torch.zeros(64, 1024, device="cuda"))
        print("request", request, flush=True)


serve()
