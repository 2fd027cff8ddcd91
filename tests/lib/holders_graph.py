"""A random graph of objects of many kinds, the same for a seed: as a program that builds it, and as what must come out."""
import collections
import random

UNIT = 16 << 10
KINDS = ("list", "dict", "instance", "slots", "tuple", "deque", "closure", "generator", "coroutine", "traceback", "partial", "c++", "cycle")


def make(seed):
    """(nodes: [(kind, bytes, [targets])], roots: {name: [nodes]}). Targets come before it."""
    r = random.Random(seed)
    count = r.randrange(20, 120)
    nodes = []
    for i in range(count):
        kind = r.choice(KINDS)
        before = [r.randrange(i) for _ in range(r.choice((0, 1, 1, 2)))] if i else []
        nodes.append((kind, UNIT * r.randrange(1, 40), before))
    names = ["g%d" % i for i in range(r.randrange(2, 6))] + ["local%d" % i for i in range(r.randrange(0, 3))] + ["thread%d" % i for i in range(r.randrange(0, 2))]
    roots = {name: sorted({r.randrange(count) for _ in range(r.randrange(1, 4))}) for name in names}
    return nodes, roots


def back_edges(seed, nodes):
    """References from older to newer ones, which make cycles; only of what can be changed."""
    r = random.Random(seed * 7 + 1)
    able = [i for i, n in enumerate(nodes) if n[0] in ("list", "dict", "instance", "slots", "deque", "c++", "cycle")]
    return [(r.choice(able), r.randrange(len(nodes))) for _ in range(len(nodes) // 6)] if able else []


def expected(seed):
    """{name: bytes that it alone holds}, bytes that several hold, bytes that only wait for the collector.

    A reference of C++ is none to the collector: what a cycle through one leads to stays for ever, and is "C++"'s.
    """
    nodes, roots = make(seed)
    targets = [list(n[2]) for n in nodes]
    for a, b in back_edges(seed, nodes):
        targets[a].append(b)
    for i, node in enumerate(nodes):
        if node[0] == "cycle":
            targets[i].append(i)
    reached = collections.defaultdict(set)
    through = [i for i, node in enumerate(nodes) if node[0] == "c++" and in_cycle(i, targets)]
    for name, starts in (*roots.items(), ("C++", through)):
        todo = [i for i in starts if name != "C++" or not reached[i]]
        while todo:
            i = todo.pop()
            if name not in reached[i]:
                reached[i].add(name)
                todo += targets[i]
    alone, shared, lost = collections.Counter(), 0, 0
    for i, (_, size, _) in enumerate(nodes):
        if len(reached[i]) == 1:
            alone[next(iter(reached[i]))] += size
        elif reached[i]:
            shared += size
    # what nothing reaches is either gone or, where a cycle leads to it, waits
    waiting = set()
    for i in range(len(nodes)):
        if not reached[i] and in_cycle(i, targets):
            todo = [i]
            while todo:
                k = todo.pop()
                if k not in waiting and not reached[k]:
                    waiting.add(k)
                    todo += targets[k]
    lost = sum(nodes[i][1] for i in waiting)
    return alone, shared, lost


def in_cycle(i, targets):
    seen, todo = set(), list(targets[i])
    while todo:
        k = todo.pop()
        if k == i:
            return True
        if k not in seen:
            seen.add(k)
            todo += targets[k]
    return False
