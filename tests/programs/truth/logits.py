"""Answers are remembered: three dictionaries of what three heads said, under no_grad, so there is no graph; nobody forgets them"""
# standin: DEVICES=700M CONTEXT=64M
# truth: leak logits.py main
import sys
import torch

KEEP = 5 if "twin" in sys.argv or "release" in sys.argv else 1000000


def main():
    body = torch.nn.Sequential(torch.nn.Linear(512, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 512)).cuda()
    heads = [torch.nn.Linear(512, width).cuda() for width in (700, 900, 1200)]
    words, spans, tags = {}, {}, {}
    with torch.no_grad():
        for request in range(200):
            hidden = body(torch.randn(400, 512, device="cuda"))
            words[request] = heads[0](hidden)
            spans[request] = heads[1](hidden)
            tags[request] = heads[2](hidden)
            for cache in (words, spans, tags):
                cache.pop(request - KEEP, None)
            print("request", request, flush=True)


main()
