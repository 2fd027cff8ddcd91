"""One layer is enough (incident 5): eight GPUs hold 66 GB of a model of 30 layers, 8.25 each; one layer is 2.2 GB, 0.28 each, and loads
in a tenth of the time.

usage: incident5.py LAYERS    30 before, 1 after
"""
# standin: DEVICES=24G,24G,24G,24G,24G,24G,24G,24G CONTEXT=0.3G
import os
import sys
import time

import torch

from account import bytes_of, history, pool, tell, watch_pool

GPUS, LAYER = 8, 275_000_000  # bytes of a layer on each GPU


def load_layer(number, device):
    time.sleep(0.002)
    return [bytes_of(LAYER // 5, device) for _ in range(5)]


def load_model(layers):
    return [load_layer(number, device) for number in range(layers) for device in range(GPUS)]


def infer(model):
    for device in range(GPUS):
        for _ in range(10):
            hidden = bytes_of(5_000_000, device)
            del hidden


def main():
    layers = int(sys.argv[1])
    watch_pool()
    begin = time.monotonic()
    model = load_model(layers)
    loaded = time.monotonic() - begin
    time.sleep(1)  # nobody asks yet: what the driver charges beside the pools is known exactly where nothing moves
    infer(model)
    parameters = [sum(t.numel() for part in model for t in part if t.device.index == device) for device in range(GPUS)]
    pools = [pool(device) for device in range(GPUS)]
    tell(total_bytes=pools[0]["total_bytes"], histories={os.getpid(): history()}, peaks={os.getpid(): pools[0]["peak_allocated_bytes"]})
    tell(verdict=None, layers=layers, load_s=loaded, pools=pools, parameters=parameters, allocated_bytes=sum(p["allocated_bytes"] for p in pools),
         reserved_bytes=sum(p["reserved_bytes"] for p in pools), uuids=[str(torch.cuda.get_device_properties(d).uuid) for d in range(GPUS)])


main()
