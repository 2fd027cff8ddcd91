"""Both cards run the same model, and one line keeps the outputs of each"""
# standin: DEVICES=880M,880M CONTEXT=64M
# truth: leak each_card.py main
import sys
import torch

kept = []


def main():
    models = [torch.nn.Linear(1024, 1024, device="cuda:%d" % card) for card in (0, 1)]
    with torch.no_grad():
        for step in range(4000 if len(sys.argv) < 2 else 400):
            for model in models:
                output = model(torch.ones(256, 1024, device=model.weight.device)).relu()
                kept.append(output)
            if len(sys.argv) > 1:
                kept.clear()


main()
