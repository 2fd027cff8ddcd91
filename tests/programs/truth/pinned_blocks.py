"""Of 680 results one in eight is kept, each in a segment of its own whose rest is free again; then a table of 900 MiB is wanted"""
# standin: DEVICES=2500M CONTEXT=64M
# truth: fragmentation pinned_blocks.py main
import sys
import torch

COMPACT = "twin" in sys.argv


def main():
    results = [torch.empty(2560 << 10, dtype=torch.uint8, device="cuda") for _ in range(680)]
    results = [result.cpu() for result in results[::8]] if COMPACT else results[::8]
    try:
        table = torch.empty(900 << 20, dtype=torch.uint8, device="cuda")
        print("table", table.numel(), len(results))
    except torch.OutOfMemoryError:
        print("no table", flush=True)


main()
