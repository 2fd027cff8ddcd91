"""A third of its requests is answered before the cache of answers is switched on, which has no bound: what it keeps is counted from there on

The twin leaves it off.
"""
# standin: DEVICES=480M CONTEXT=64M
# cause: leak
# follow: release
import torch
from torch import nn

import trial

REQUESTS, ON, ROWS, WIDTH = 240, 80, 768, 512


def main():
    model, answers = nn.Sequential(nn.Linear(WIDTH, 3 * WIDTH), nn.SiLU(), nn.Linear(3 * WIDTH, WIDTH)).cuda().eval(), {}
    with torch.no_grad():
        for request in trial.units(REQUESTS):
            answer = model(torch.empty(ROWS, WIDTH, device="cuda"))
            if request >= ON and not trial.follows("release"):
                answers[request] = answer
            del answer


main()
