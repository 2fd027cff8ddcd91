"""Makes and drops objects of Python: containers, functions, modules' code, buffers that are blocks of malloc.

usage: objects.py STEPS
"""
import sys
import time


class Node:
    def __init__(self, left, right):
        self.left, self.right, self.body = left, right, bytearray(600)


def tree(depth):
    return Node(tree(depth - 1), tree(depth - 1)) if depth else None


def step(kept):
    kept.append({n: [n, str(n), tree(3)] for n in range(400)})
    del kept[:-4]
    exec(compile("def f(x):\n    return [x] * 3\nf(1)", "made", "exec"), {})


def main():
    kept = []
    start = time.process_time()
    for _ in range(20 * int(sys.argv[1])):
        step(kept)
    print(f"bench cpu_seconds {time.process_time() - start:.6f}")


main()
