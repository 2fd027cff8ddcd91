"""Cases by kind: each function makes a trace from a seed, `sick` or its healthy twin (the same program with the fix applied, or
what only looks like the illness), and returns the verdicts that must be raised. Whatever else is raised is a false one.

Where a pool's request failed (LOOKED_AHEAD), the truth is no definition, but what happens next: the same program is run once more in worlds in
which one cause is gone, under a perfect packing, without the copies, on a larger card, and the first in which it goes on tells."""
import random
import shutil

from gpu import ADAM, GIB, MIB, MODULE, SITE, Device, OutOfMemory, Pool, Training
from trace import EXIT_CODE, EXIT_SIGNAL, Trace

NCCL = "/usr/lib/libnccl.so.2"


class Case:
    """A machine with devices; sizes, noise, marks, and whether somebody sampled the system come from the seed."""

    def __init__(self, path, seed, world=None):
        self.t, self.rng, self.world = Trace(path), random.Random(seed), world
        self.trainings, self.units, self.failed = [], 0, False
        self.marks = self.rng.random() < 0.5
        self.sampled = self.rng.random() < 0.75
        self.total = self.rng.choice([8, 16, 24, 40, 80]) * GIB
        self.devices, self.pools, self.pids, self.memory = [], [], 3_900_000, self.rng.choice([32, 64, 256]) * GIB

    def device(self):
        self.devices.append(Device(f"GPU-{len(self.devices):08x}", self.total * (2 if self.world == "larger" else 1)))
        return self.devices[-1]

    def process(self, name="train.py", start=0.0):
        self.pids += self.rng.randrange(1, 50)
        return self.t.process(self.pids, ["python", name], start)

    def pool(self, *args, **more):
        self.pools.append(Pool(*args, packed=self.world == "packed", **more))
        return self.pools[-1]

    def done(self):
        """Units of work: steps, requests."""
        return self.units + sum(t.number for t in self.trainings)

    def share(self, low, high):
        return int(self.total * (low + (high - low) * self.rng.random()))

    def training(self, pool, model, activations, layers=None, **more):
        """`model` and `activations`: bytes of all parameters, and of one step's activations."""
        layers = layers or self.rng.randrange(8, 24)
        self.trainings.append(Training(pool, self.rng, layers, model // layers, activations // layers, marks=self.marks,
                                       period=0.2 + self.rng.random(), **more))
        return self.trainings[-1]

    def one_pool(self, name="train.py"):
        """A process that has a device to itself."""
        device = self.device()
        return self.pool(self.process(name), device)

    def crash(self, p):
        self.failed = True
        p.exit = (EXIT_CODE, 1)

    def ended(self, pool, failed, sick, kind):
        """Only the sick one may have failed. Returns its verdicts."""
        assert failed == sick
        if failed:
            self.crash(pool.p)
        self.sample(self.end(), [pool])
        return {kind} if sick else set()

    def sample(self, end, pools=(), others=(), machine=None):
        """What the recorder saw each second: the machine, the devices and the processes on them.
        others: (device, pid, name, bytes, from second)"""
        if not self.sampled and not machine:
            return
        s = self.t.samples
        m = s.subject("MACHINE")
        seconds = [0.1 + end * i / 20 for i in range(21)]
        for i, at in enumerate(seconds):
            values = dict(total=self.memory, available=self.memory * 0.7, free=self.memory * 0.5, cached=self.memory * 0.1,
                          swap_total=4 * GIB, swap_free=4 * GIB, anon=self.memory * 0.2, oom_kills=0)
            values.update(machine(i / 20) if machine else {})
            s.say(at, m, **values)
        if not self.sampled:
            return
        for number, device in enumerate(self.devices):
            d = s.subject("DEVICE", (1, number, 0), device.uuid, device.name)
            for at in seconds:
                s.say(at, d, total=device.total, used=device.total - device.free(), free=device.free())
        for pool in pools:
            d = s.subject("DEVICE_PROCESS", (1, pool.p.pid, pool.p.pid), pool.device.uuid, "python")
            for at in seconds:
                if at >= pool.p.start:
                    s.say(at, d, bytes=pool.reserved + pool.outside + pool.context, known=1)
        for device, pid, name, size, start in others:
            d = s.subject("DEVICE_PROCESS", (1, pid, pid), device.uuid, name)
            for at in seconds:
                if at >= start:
                    s.say(at, d, bytes=size, known=1)

    def end(self):
        return max(p.now for p in self.t.processes)


def fails(work):
    """Works until memory runs out; True if it did."""
    try:
        work()
    except OutOfMemory:
        return True
    return False


def run(training, steps, hook=None, then=None):
    def work():
        for n in range(steps):
            training.step(hook)
            if then:
                then(n)
    return fails(work)


def capacity(c, sick):
    pool = c.one_pool()
    size = c.share(0.05, 0.12)
    t = c.training(pool, size, c.share(0.85, 1.1) if sick else c.share(0.2, 0.4))
    return c.ended(pool, run(t, 12), sick, "capacity")


def capacity_late(c, sick):
    """A longer batch than all before."""
    pool = c.one_pool()
    t = c.training(pool, c.share(0.05, 0.1), c.share(0.3, 0.4))
    at = c.rng.randrange(20, 40)

    def work():
        for n in range(60):
            t.step(scale=3.5 if sick and n == at else 0.9 + 0.2 * c.rng.random())
    return c.ended(pool, fails(work), sick, "capacity")


def capacity_caught(c, sick):
    """find_executable_batch_size: it fails, and the run goes on with less. Explained, but no problem."""
    pool = c.one_pool()
    t = c.training(pool, c.share(0.05, 0.1), c.share(0.3, 0.4))
    live = []
    stack = t.stack(25, ("/app/train.py", "try_batch", 12), MODULE)
    if sick:
        try:
            while True:
                live.append(pool.alloc(c.total // 12, stack))
        except OutOfMemory:
            for a in live:
                pool.free(a)
    assert not run(t, 40)
    c.sample(c.end(), [pool])
    return {"capacity"} if sick else set()


def fragmentation(c, sick, warm=(25, 40)):
    """A card in pieces: what was loaded for a while has left holes, which small blocks pin. Requests need two blocks each, the second in
    proportion to the first; the sick one's last ones need far more than any hole, and together less or more than all that is free."""
    pool = c.one_pool()
    d, chunk = pool.device, c.total // 40
    stack = pool.p.stack(("/app/train.py", "<module>", 12), ("/app/train.py", "load", 7))
    small = pool.p.stack(("/app/train.py", "<module>", 14), ("/app/train.py", "cache", 9))
    first, second = (pool.p.stack(("/app/train.py", "<module>", 20), ("/app/train.py", "answer", line)) for line in (31, 34))
    count = int((c.total - pool.context) / (chunk * 1.1 + 12 * MIB)) - c.rng.randrange(3)
    kept, holes = [], []
    for _ in range(count):
        kept.append(pool.alloc(chunk // 4 + c.rng.randrange(4) * MIB, small))
        holes.append(pool.alloc(chunk - chunk // 5 + c.rng.randrange(4) * MIB, stack))
        pool.p.tick(0.05)
    # blocks of half a segment pin the rest of it
    for b in holes:
        pool.free(b)
    for _ in holes:
        kept.append(pool.alloc(int(chunk * 0.45), small))
        pool.p.tick(0.01)
    room = c.total - pool.context - pool.allocated
    part, ratio, needs = chunk * 0.3, 0.4 + 0.5 * c.rng.random(), room * c.rng.choice([0.5, 0.6, 0.7, 0.8, 1.2, 1.35, 1.5])
    warm = c.rng.choice(warm)

    def request(most):
        live = [pool.alloc(int(most), first)]
        pool.p.tick(0.1)
        live.append(pool.alloc(int(most * ratio), second))
        pool.p.tick(0.1)
        for a in live:
            pool.free(a)
        c.units += 1

    def work():
        for _ in range(warm):
            request(part * (0.8 + 0.2 * c.rng.random()))
        for _ in range(8):
            request(needs / (1 + ratio) if sick else part)
    return c.ended(pool, fails(work), sick, "fragmentation")


def fragmentation_first(c, sick):
    """Nothing came before that says what its requests go on to."""
    return fragmentation(c, sick, (0,))


def leak(c, sick, grow=lambda n: 1.0, steps=(80, 200)):
    pool = c.one_pool()
    t = c.training(pool, c.share(0.04, 0.08), c.share(0.1, 0.25))
    n = c.rng.randrange(*steps)
    per_step = c.total * (0.3 + 0.3 * c.rng.random()) / n
    stack = t.stack(30, MODULE, ("/app/hooks.py", "save_activation", 73))
    cache = c.rng.randrange(5, 12)
    kept = []

    def hook(t):
        size = int(per_step * grow(t.number / n) * (0.9 + 0.2 * c.rng.random()))
        for _ in range(4):
            kept.append(pool.alloc(size // 4, stack))
        if not sick:
            while len(kept) > 4 * cache:
                pool.free(kept.pop(0))
    if run(t, n, hook):
        c.crash(pool.p)
    c.sample(c.end(), [pool])
    return {"leak"} if sick else set()


def leak_to_the_end(c, sick):
    """Until it fails."""
    pool = c.one_pool()
    t = c.training(pool, c.share(0.04, 0.08), c.share(0.1, 0.25))
    n = c.rng.randrange(100, 250)
    per_step = c.total * 1.0 / n
    stack = t.stack(30, MODULE, ("/app/model.py", "Net.forward", 48))

    def hook(t):
        a = pool.alloc(int(per_step * (0.9 + 0.2 * c.rng.random())), stack)
        if sick:
            t.kept.append(a)
        else:
            pool.free(a)
    return c.ended(pool, run(t, n, hook), sick, "leak")


def leak_accelerating(c, sick):
    return leak(c, sick, (lambda x: 0.2 + 2.2 * x) if sick else (lambda x: 1.0), (120, 220))


def leak_lockstep(c, sick):
    """Losses kept with their graph: every forward site grows. Twin: the graph of the step before is kept, no more."""
    pool = c.one_pool()
    t = c.training(pool, c.share(0.04, 0.08), c.share(0.1, 0.2))
    n = c.rng.randrange(60, 120)
    part = c.total * 0.5 / n / t.layers
    kept = []

    def hook(t):
        kept.append([pool.alloc(int(part), t.forward_stack(i)) for i in range(t.layers)])
        if not sick and len(kept) > 2:
            for a in kept.pop(0):
                pool.free(a)
    if run(t, n, hook):
        c.crash(pool.p)
    c.sample(c.end(), [pool])
    return {"leak"} if sick else set()


def other_process(c, sick):
    """Processes that are not traced. Only a sampler can tell them."""
    c.sampled = True
    d = c.device()
    neighbours = c.rng.randrange(1, 4)
    d.others = c.share(0.5, 0.7) if sick else c.share(0.02, 0.1)
    parts = [d.others // neighbours] * neighbours
    pool = c.pool(c.process(), d)
    t = c.training(pool, c.share(0.03, 0.05), c.share(0.35, 0.5))
    failed = run(t, 20)
    assert failed == sick
    if failed:
        c.crash(pool.p)
    c.sample(c.end(), [pool], [(d, 5000 + i, "python", part, 0) for i, part in enumerate(parts)])
    return {"other_process"} if sick else set()


def other_process_traced(c, sick):
    d = c.device()
    first = c.pool(c.process("serve.py"), d)
    stack = first.p.stack(("/app/serve.py", "<module>", 8), ("/app/serve.py", "load", 31))
    size = c.share(0.5, 0.65) if sick else c.share(0.05, 0.1)
    for _ in range(10):
        first.alloc(size // 10, stack)
        first.p.tick(0.1)
    pool = c.pool(c.process(start=3.0), d)
    t = c.training(pool, c.share(0.03, 0.05), c.share(0.35, 0.5))
    failed = run(t, 20)
    assert failed == sick
    if failed:
        c.crash(pool.p)
    first.p.at(c.end() + 1)
    c.sample(c.end(), [first, pool])
    return {"other_process"} if sick else set()


def phase_peak(c, sick):
    pool = c.one_pool()
    t = c.training(pool, c.share(0.03, 0.06), c.share(0.2, 0.3))

    def work():
        for epoch in range(3):
            if c.marks:
                pool.p.begin("train")
            for _ in range(12):
                t.step()
            if c.marks:
                pool.p.end_phase("train")
                pool.p.begin("evaluate")
            t.evaluate(0.8 if not sick or epoch == 0 else 5.0, blocks=8)
            if c.marks:
                pool.p.end_phase("evaluate")
    return c.ended(pool, fails(work), sick, "phase_peak")


def copies(c, sick):
    pool = c.one_pool("infer.py")
    n = c.rng.randrange(20, 60)
    sizes = [int(c.total * 0.22 / n * (0.5 + c.rng.random())) for _ in range(n)]
    held = []
    for k, line in enumerate((12, 19, 27, 36)):
        if k and c.world == "without copies":
            continue
        half = 2 if k == 2 and c.rng.random() < 0.5 else 1
        live = []
        for i, s in enumerate(sizes):
            live.append(pool.alloc(s // half, pool.p.stack(("/app/infer.py", "<module>", line), ("/app/model.py", "build", 5),
                                                           ("/app/model.py", "Layer.__init__", 10 + i % 7))))
            pool.p.tick(0.01)
        held.append(live)
        if not sick and k < 3:
            for a in held.pop():
                pool.free(a)
        pool.p.tick(1)

    def work():
        live = []
        for i in range(12):
            live.append(pool.alloc(int(c.total * 0.025), pool.p.stack(("/app/infer.py", "<module>", 40), MODULE,
                                                                      ("/app/model.py", "Net.forward", 60))))
            c.units += 1
            pool.p.tick(0.1)
    return c.ended(pool, fails(work), sick, "copies")


def outside_pool(c, sick):
    pool = c.one_pool()
    stack = pool.p.stack(("/app/train.py", "<module>", 15), (SITE + "torch/distributed/distributed_c10d.py", "init_process_group", 1184),
                         library=NCCL)
    for _ in range(8):
        pool.other((c.share(0.3, 0.35) if sick else c.share(0.01, 0.02)) // 8, stack)
        pool.p.tick(0.1)
    t = c.training(pool, c.share(0.03, 0.05), c.share(0.6, 0.66) - c.total // 16)
    return c.ended(pool, run(t, 20), sick, "outside_pool")


def limit(c, sick):
    d = c.device()
    pool = c.pool(c.process(), d, cap=c.share(0.3, 0.5) if sick else None)
    t = c.training(pool, c.share(0.03, 0.05), c.share(0.5, 0.6))
    return c.ended(pool, run(t, 20), sick, "limit")


def retained(c, sick):
    """NCCL asks beside a pool that keeps what it has freed."""
    pool = c.one_pool()
    t = c.training(pool, c.share(0.03, 0.05), c.share(0.78, 0.84))
    assert not run(t, 8)
    if not sick:
        pool.release()
    stack = pool.p.stack(("/app/train.py", "<module>", 50), (SITE + "torch/distributed/distributed_c10d.py", "all_reduce", 2050),
                         library=NCCL)

    def work():
        for _ in range(4):
            pool.other(int(c.total * 0.022), stack)
    return c.ended(pool, fails(work), sick, "retained")


def graph_pools(c, sick):
    """A server captures a graph for each size of a batch, into private pools; the healthy one into a pool for all, the largest first,
    and its results are used at once."""
    pool = c.one_pool("serve.py")
    d = pool.device
    stack = pool.p.stack(("/app/serve.py", "<module>", 20), ("/app/serve.py", "answer", 44))
    graph = pool.p.stack(("/app/serve.py", "<module>", 14), ("/app/graphs.py", "capture", 31))
    pool.alloc(c.share(0.2, 0.4), pool.p.stack(("/app/serve.py", "<module>", 9), ("/app/model.py", "load", 12)))
    n, kept, drop = c.rng.randrange(4, 12), [], c.rng.random() < 0.5
    unit = c.share(0.2, 0.35) // (n * (n + 1))
    sizes = [(i + 1) * unit // (2 * MIB) * 2 * MIB + 2 * MIB for i in range(n)]
    rest = d.free() - 2 * sum(sizes) - c.share(0.01, 0.03)
    for i, size in enumerate(sizes if sick else sizes[::-1]):
        with pool.capture(i + 1 if sick else 1):
            first, second = pool.alloc(size, graph), pool.alloc(size, graph)
            pool.p.tick(0.3)
            pool.free(first)
            results = [pool.alloc(size * 9 // 20, graph)]
            pool.free(second)
            results.append(pool.alloc(size * 12 // 20, graph))
        for a in results if drop or not sick else []:
            pool.free(a)
    cache = pool.p.stack(("/app/serve.py", "<module>", 17), ("/site/vllm/worker/cache_engine.py", "allocate", 60))
    kept.append(pool.alloc(rest * 9 // 10, cache))
    for _ in range(c.rng.randrange(20, 60)):
        a = pool.alloc(rest // 20 + c.rng.randrange(8) * MIB, stack)
        pool.p.tick(0.2)
        pool.free(a)
    kept.append(pool.alloc(rest // 12, stack))
    want = c.share(0.06, 0.09)
    assert not sick or d.free() + pool.unused() < want < d.free() + sum(pool.holes(graphs=True))
    return c.ended(pool, fails(lambda: pool.alloc(want, stack)), sick, "retained")


# ---- what only looks ill

def first_step(c, sick):
    """The optimizer's state and a workspace come in step 1 and stay."""
    pool = c.one_pool()
    t = c.training(pool, c.share(0.1, 0.15), c.share(0.1, 0.2))
    assert not run(t, c.rng.randrange(30, 80))
    c.sample(c.end(), [pool])
    return set()


def accumulation(c, sick):
    """Gradients of several micro-steps grow until the optimizer's step."""
    pool = c.one_pool()
    t = c.training(pool, c.share(0.05, 0.08), c.share(0.1, 0.2))
    k, kept = c.rng.choice([4, 8]), []

    def hook(t):
        kept.append(pool.alloc(c.total // 100, t.stack(30, MODULE, ("/app/model.py", "Net.loss", 52))))
        if len(kept) == k:
            while kept:
                pool.free(kept.pop())
    assert not run(t, 12 * k, hook)
    c.sample(c.end(), [pool])
    return set()


def evaluation(c, sick):
    pool = c.one_pool()
    t = c.training(pool, c.share(0.05, 0.08), c.share(0.1, 0.2))
    for n in range(90):
        t.step()
        if n % 30 == 29:
            t.evaluate(2.0)
    c.sample(c.end(), [pool])
    return set()


def dynamic_shapes(c, sick):
    """Sizes vary; the pool's reserve grows for a while."""
    pool = c.one_pool()
    t = c.training(pool, c.share(0.05, 0.08), c.share(0.1, 0.2))
    for n in range(100):
        t.step(scale=0.5 + 1.0 * c.rng.random())
    c.sample(c.end(), [pool])
    return set()


def serving(c, sick):
    pool = c.one_pool("serve.py")
    pool.alloc(int(c.total * 0.88), pool.p.stack(("/app/serve.py", "<module>", 12), ("/site/vllm/worker/cache_engine.py", "allocate", 60)))
    stack = pool.p.stack(("/app/serve.py", "<module>", 20), ("/app/serve.py", "answer", 44))
    for _ in range(200):
        a = pool.alloc(c.total // 200 + c.rng.randrange(8) * MIB, stack)
        pool.p.tick(0.05)
        pool.free(a)
        pool.p.tick(0.05)
    c.sample(c.end(), [pool])
    return set()


def replicas(c, sick):
    """Data parallel: each process has the model on its own device."""
    pools = []
    for _ in range(c.rng.randrange(2, 4)):
        d = c.device()
        pool = c.pool(c.process(), d)
        run(c.training(pool, int(c.total * 0.1), int(c.total * 0.2), layers=12), 25)
        pools.append(pool)
    c.sample(c.end(), pools)
    return set()


def idle_cache(c, sick):
    pool = c.one_pool()
    t = c.training(pool, c.share(0.02, 0.04), c.share(0.7, 0.75))
    assert not run(t, 10)
    pool.p.tick(30)
    c.sample(c.end(), [pool])
    return set()


# ---- the host

def host_leak(c, sick):
    p = c.process("server.py")
    request = p.stack(("/app/server.py", "<module>", 90), ("/app/server.py", "handle", 33))
    keep = p.stack(("/app/server.py", "<module>", 90), ("/app/server.py", "handle", 33), ("/app/cache.py", "remember", 12))
    kept, bound = [], c.rng.randrange(200, 400)
    size = c.rng.randrange(20, 200) * 1024
    base = [p.malloc(c.rng.randrange(1, 4) * MIB, request) for _ in range(20)]
    for n in range(3000):
        a = p.malloc(c.rng.randrange(100, 100000), request)
        if n % 2 == 0:
            kept.append(p.malloc(int(size * (0.8 + 0.4 * c.rng.random())), keep))
            if not sick and len(kept) > bound:
                p.mfree(kept.pop(0))
        p.tick(0.02)
        p.mfree(a)
    for a in base:
        p.mfree(a)
    c.sample(c.end())
    return {"leak"} if sick else set()


def host_pressure(c, sick):
    p = c.process()
    stack = p.stack(("/app/train.py", "<module>", 20), ("/app/data.py", "load", 44))
    size = int(c.memory * (0.8 if sick else 0.4))
    for n in range(120):
        if n < 40:
            p.malloc(size // 40, stack)
        p.mfree(p.malloc(size // 500, stack))
        p.tick(0.3)
    swap = c.memory // 8
    def machine(x):
        x = min(1, x * 3)
        used = size * x + c.memory * 0.15
        return dict(available=max(c.memory * 0.02, c.memory - used) if sick else c.memory - used, anon=min(used, c.memory * 0.9),
                    swap_free=swap - (c.memory * 0.06 * max(0, x - 0.5) * 2 if sick else 0), swap_total=swap)
    c.sampled = True
    c.sample(c.end(), machine=machine)
    return {"host_pressure"} if sick else set()


def page_cache(c, sick):
    p = c.process()
    stack = p.stack(("/app/train.py", "<module>", 20), ("/app/data.py", "read", 44))
    for i in range(60):
        p.map_file(c.memory // 100, f"/data/shard-{i}.arrow", stack)
        p.tick(0.2)
    c.sampled = True
    c.sample(c.end(), machine=lambda x: dict(cached=c.memory * (0.1 + 0.6 * x), free=c.memory * (0.6 - 0.55 * x), available=c.memory * 0.7))
    return set()


KINDS = {f.__name__: f for f in (
    capacity, capacity_late, capacity_caught, fragmentation, leak, leak_to_the_end, leak_accelerating, leak_lockstep, other_process,
    other_process_traced, phase_peak, copies, outside_pool, limit, retained, graph_pools, first_step, accumulation, evaluation, dynamic_shapes,
    serving, replicas, idle_cache, host_leak, host_pressure, page_cache)}
UNTOLD = {"fragmentation_first": fragmentation_first}  # counted apart
HEALTHY = {"first_step", "accumulation", "evaluation", "dynamic_shapes", "serving", "replicas", "idle_cache", "page_cache"}


LOOKED_AHEAD = {"capacity", "capacity_late", "fragmentation", "fragmentation_first", "copies"}
WORLDS = (("packed", "fragmentation"), ("without copies", "copies"), ("larger", "capacity"))
GOES_ON = 2  # units of work more


def happens(path, kind, key, sick=True, world=None):
    """The same case in another world, or its twin."""
    shutil.rmtree(path, ignore_errors=True)
    c = Case(path, key, world)
    try:
        {**KINDS, **UNTOLD}[kind](c, sick)
    except (AssertionError, OutOfMemory):
        c.failed = True
    return c


def what_happens_next(path, kind, key, stopped):
    """The cause that is gone in the first world in which the program gets further."""
    for world, cause in WORLDS:
        if happens(path, kind, key, world=world).done() >= stopped + GOES_ON:
            return {cause}
    raise AssertionError("it never goes on")


def goes_on(path, case, said):
    """Whether the case's program gets further without what is said to be the cause: in the world that lacks it, else as its twin."""
    world = next((world for world, cause in WORLDS if cause == said), None) if case.kind in LOOKED_AHEAD else None
    if world:
        return happens(path, case.kind, case.key, world=world).done() >= case.done() + GOES_ON
    return said in case.truth and not happens(path, case.kind, case.key, sick=False).failed


def make_case(path, kind, seed, sick):
    """A case whose sizes did not come out as it says (the sick one fits, or the healthy one does not) is drawn again."""
    for attempt in range(50):
        shutil.rmtree(path, ignore_errors=True)
        key = f"{kind}-{seed}-{attempt}"
        c = Case(path, key)
        c.kind, c.key = kind, key
        try:
            c.truth = {**KINDS, **UNTOLD}[kind](c, sick)
            if sick and kind in LOOKED_AHEAD:
                c.truth = what_happens_next(path + "-next", kind, key, c.done())
        except (AssertionError, OutOfMemory):
            continue
        c.t.save()
        return c
    raise RuntimeError(f"{kind} {seed}: no such case")


def make(path, kind, seed, sick):
    """Returns the verdicts that must be raised."""
    return make_case(path, kind, seed, sick).truth
