"""A device, a caching allocator like PyTorch's on it, and a training loop in that: so that generated cases have the shapes of
real ones, and their truth is known by construction."""
import contextlib

from trace import ASYNC, DEVICE, POOL  # noqa: F401  (a module of this directory)

MIB, GIB = 1 << 20, 1 << 30
SITE = "/usr/lib/python3/site-packages/"
ADAM = (SITE + "torch/optim/adam.py", "Adam.step", 163)
MODULE = (SITE + "torch/nn/modules/module.py", "Module._call_impl", 1527)


class Device:
    def __init__(self, uuid, total, name="Stand-in 24"):
        self.uuid, self.total, self.name = uuid, total, name
        self.others = 0      # bytes of processes that are not traced
        self.used = 0        # of traced ones, with their contexts

    def free(self):
        return max(0, self.total - self.others - self.used)


class OutOfMemory(Exception):
    pass


class Pool:
    """One process's caching allocator on one device. PACKED: one that no device has, whose blocks lie side by side at any time."""

    def __init__(self, process, device, ordinal=0, context=300 * MIB, cap=None, expandable=False, packed=False):
        self.p, self.device, self.cap, self.expandable = process, device, cap, expandable
        self.side_by_side = {} if packed else None  # sizes by address
        self.id = process.device(ordinal, device.uuid, device.total, device.name)
        self.context = context
        device.used += context
        self.segments = {}   # address -> [size, small, [blocks: (offset, size, used)], private pool]
        self.private = self.captures = 0
        self.reserved = self.allocated = 0
        self.ooms = self.retries = 0
        self.outside = 0

    # ---- the driver

    def driver(self, size, stack, hook=4):
        """cudaMalloc: an address, or None with the failure in the trace."""
        size = size + 2 * MIB - 1 & ~(2 * MIB - 1) if size >= 2 * MIB else size
        if size > self.device.free():
            self.p.info(self.id, self.device.free(), self.device.total)
            self.p.fail(self.id, DEVICE, size, stack, hook=hook)
            return None
        self.device.used += size
        return self.p.alloc(self.id, DEVICE, size, stack, hook=hook)

    def other(self, size, stack):
        """Memory of this process outside its pool."""
        address = self.driver(size, stack, hook=7)
        if address is None:
            raise OutOfMemory
        self.outside += size
        return address

    def release(self):
        for address in [a for a, s in self.segments.items() if not s[3] and not any(b[2] for b in s[2])]:
            size = self.segments.pop(address)[0]
            self.p.free(self.id, DEVICE, address)
            self.device.used -= size
            self.reserved -= size

    def grow(self, size, small, stack):
        """A new segment, after giving the cache back if need be."""
        segment = 2 * MIB if small else 20 * MIB if size < 10 * MIB else size + 2 * MIB - 1 & ~(2 * MIB - 1)
        for attempt in range(2):
            if self.cap is None or self.reserved + segment <= self.cap:
                address = self.driver(segment, stack)
                if address is not None:
                    self.reserved += segment
                    self.segments[address] = [segment, small, [[0, segment, False]], self.private]
                    self.retries += attempt
                    return address
            if attempt == 0:
                self.release()
        return None

    # ---- the pool

    def fit(self, size, small):
        best = None
        for address, (_, is_small, blocks, private) in self.segments.items():
            if is_small != small or private != self.private:
                continue
            for b in blocks:
                if not b[2] and b[1] >= size and (best is None or b[1] < best[1][1]):
                    best = (address, b)
        if best and not small and size < 200 * MIB and best[1][1] > size + 20 * MIB * 50:
            return None
        return best

    def alloc(self, size, stack):
        size = max(512, size + 511 & ~511)
        if self.side_by_side is not None:
            return self.alloc_packed(size, stack)
        small = size <= MIB
        found = self.fit(size, small)
        if not found:
            address = self.grow(size, small, stack)
            if address is None:
                self.ooms += 1
                self.p.info(self.id, self.device.free(), self.device.total)
                self.p.fail(self.id, POOL, size, stack, self.allocated, self.reserved)
                raise OutOfMemory
            found = (address, self.segments[address][2][0])
        address, block = found
        rest = block[1] - size
        if rest >= (512 if small else MIB):
            blocks = self.segments[address][2]
            blocks.insert(blocks.index(block) + 1, [block[0] + size, rest, False])
            block[1] = size
        block[2] = True
        self.allocated += block[1]
        self.p.alloc(self.id, POOL, block[1], stack, address=address + block[0], capture=self.captures if self.private else 0)
        return address + block[0]

    def alloc_packed(self, size, stack):
        if size > self.device.free() or (self.cap is not None and self.allocated + size > self.cap):
            raise OutOfMemory
        address = self.p.alloc(self.id, DEVICE, size, stack, hook=4)
        self.side_by_side[address] = size
        self.change_packed(size)
        return address

    def change_packed(self, size):
        self.device.used += size
        self.reserved += size
        self.allocated += size

    def free(self, at):
        if self.side_by_side is not None:
            return self.change_packed(-self.side_by_side.pop(at))
        for address, (size, _, blocks, _) in self.segments.items():
            if not address <= at < address + size:
                continue
            i = next(i for i, b in enumerate(blocks) if address + b[0] == at)
            blocks[i][2] = False
            self.allocated -= blocks[i][1]
            self.p.free(self.id, POOL, at)
            if i + 1 < len(blocks) and not blocks[i + 1][2]:
                blocks[i][1] += blocks.pop(i + 1)[1]
            if i and not blocks[i - 1][2]:
                blocks[i - 1][1] += blocks.pop(i)[1]
            return
        raise KeyError(at)

    def holes(self, graphs=False):
        """Of the common pool, or those of graphs."""
        return [b[1] for _, _, blocks, private in self.segments.values() for b in blocks if not b[2] and bool(private) == graphs]

    def unused(self):
        return sum(self.holes())

    def largest_hole(self):
        return max(self.holes(), default=0)

    @contextlib.contextmanager
    def capture(self, private):
        """A graph is captured, into that private pool, and lives on."""
        self.captures += 1
        self.private = private
        yield
        self.private = 0


class Training:
    """A model of some layers that is trained with Adam; sizes in bytes."""

    def __init__(self, pool, rng, layers, layer_bytes, activation_bytes, script="/app/train.py", marks=False, period=0.5, setup=0.5):
        self.pool, self.p, self.rng = pool, pool.p, rng
        self.layers, self.marks, self.period, self.script = layers, marks, period, script
        self.sizes = [int(layer_bytes * (0.8 + 0.4 * rng.random())) for _ in range(layers)]
        self.activations = [int(activation_bytes * (0.8 + 0.4 * rng.random())) for _ in range(layers)]
        self.p.at(self.p.now + setup)
        self.params = [pool.alloc(s, self.stack(20, ("/app/model.py", "Net.__init__", 10 + i),
                                                (SITE + "torch/nn/modules/linear.py", "Linear.__init__", 96)))
                       for i, s in enumerate(self.sizes)]
        self.grads, self.states, self.number, self.kept = [], [], 0, []

    def stack(self, line, *frames):
        return self.p.stack((self.script, "<module>", line), *frames)

    def forward_stack(self, i, line=30):
        return self.stack(line, MODULE, ("/app/model.py", "Net.forward", 40), MODULE, ("/app/model.py", "Block.forward", 60 + i))

    def step(self, hook=None, scale=1.0, line=30):
        """One step; hook(self) is called after the forward pass."""
        p, pool = self.p, self.pool
        begin = p.now
        if self.marks:
            p.step(self.number)
        live = []
        for i, size in enumerate(self.activations):
            live.append(pool.alloc(int(size * scale), self.forward_stack(i, line)))
            p.tick(self.period / self.layers / 3)
        if hook:
            hook(self)
        new = not self.grads
        for i in reversed(range(self.layers)):
            if new:
                self.grads.append(pool.alloc(self.sizes[i], self.stack(31, (SITE + "torch/_tensor.py", "Tensor.backward", 522),
                                                                       (SITE + "torch/autograd/__init__.py", "backward", 266))))
            pool.free(live.pop())
            p.tick(self.period / self.layers / 3)
        if not self.states:
            for s in self.sizes:
                self.states += [pool.alloc(s, self.stack(32, ADAM)), pool.alloc(s, self.stack(32, ADAM))]
        scratch = pool.alloc(64 * 1024, self.stack(32, ADAM))
        p.tick(self.period / 6)
        pool.free(scratch)
        self.number += 1
        p.at(begin + self.period * (0.95 + 0.1 * self.rng.random()))

    def evaluate(self, scale, line=40, blocks=3):
        """One pass without gradients that needs `scale` times the activations of a step, at the same time."""
        total = int(sum(self.activations) * scale)
        live = []
        for i in range(blocks):
            live.append(self.pool.alloc(total // blocks, self.stack(line, ("/app/train.py", "evaluate", 70 + i), MODULE,
                                                                     ("/app/model.py", "Net.forward", 45))))
            self.p.tick(self.period)
        for a in live:
            self.pool.free(a)
        self.p.tick(self.period)
