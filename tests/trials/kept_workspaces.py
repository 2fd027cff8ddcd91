"""A client for each stream, and cuBLAS keeps a workspace for each of them: 32 MiB, whether or not the client multiplies now.

The twin serves all on one stream.
"""
# standin: DEVICES=640M CONTEXT=64M
# cause: capacity|retained
# follow: workspace
import torch
from torch import nn

import trial

CLIENTS, ROUNDS = 24, 4


def main():
    model, streams = nn.Linear(1024, 1024, bias=False, device="cuda"), []
    with torch.no_grad():
        for i in trial.units(CLIENTS * ROUNDS):
            if i < CLIENTS:
                streams.append(torch.cuda.current_stream() if trial.TWIN else torch.cuda.Stream())
            with torch.cuda.stream(streams[i % CLIENTS]):
                answer = model(torch.empty(128, 1024, device="cuda"))
            del answer


main()
