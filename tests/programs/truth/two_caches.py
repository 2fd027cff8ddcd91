"""An evaluation keeps its inputs by one line and its predictions by another, on the device: either alone would fill it in the end"""
# standin: DEVICES=900M CONTEXT=64M
# truth: leak two_caches.py batch, predict
import sys
import torch

KEEP = 5 if "twin" in sys.argv or "release" in sys.argv else 10 ** 9


def batch():
    return torch.randn(1000, 512, device="cuda")


def predict(model, data):
    return model(data).softmax(-1)


def main():
    model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 300)).cuda()
    inputs, outputs = [], []
    with torch.no_grad():
        for step in range(300):
            inputs.append(batch())
            outputs.append(predict(model, inputs[-1]))
            del inputs[:-KEEP], outputs[:-KEEP]
            print("step", step, flush=True)


main()
