"""Incident 1 with the real MindSpore on the CPU, where a model's parameters are host memory: after training, inference loads the model again,
from arrays that were copied out of the first one, and memory ends at the float32 cast of its embedding.

usage: mindspore_main.py [--healthy]    what is done with is given back before the next copy is made
"""
import gc
import json
import os
import sys
import time

import mindspore
import numpy
from mindspore import Parameter, Tensor, nn, ops

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import recording

recording.begin()

HEALTHY = "--healthy" in sys.argv
LAYERS, HIDDEN, WORDS = 10, 1024, 19456

mindspore.set_context(device_target="CPU")


def shapes():
    yield "embedding", (WORDS, HIDDEN)
    for i in range(LAYERS):
        yield "attention%d" % i, (HIDDEN, 4 * HIDDEN)
        yield "mlp%d" % i, (HIDDEN, 3 * HIDDEN)


class Model(nn.Cell):
    """The head is what is trained."""

    def __init__(self, params):
        super().__init__()
        self.weights = mindspore.ParameterTuple([Parameter(Tensor(params[name]), name=name, requires_grad=False) for name, _ in shapes()])
        self.head = nn.Dense(HIDDEN, 8)

    def construct(self, hidden):
        return self.head(hidden)

    def to_numpy(self):
        return {weight.name: weight.asnumpy().copy() for weight in self.weights}

    def generate(self):
        return ops.cast(self.weights[0], mindspore.float32)


def load_checkpoint():
    return {name: numpy.ones(shape, numpy.float16) for name, shape in shapes()}


def train(model):
    optimizer, loss = nn.SGD(model.trainable_params(), 0.1), nn.MSELoss()
    step = mindspore.value_and_grad(lambda x, y: loss(model(x), y), None, optimizer.parameters)
    for _ in range(3):
        _, gradients = step(Tensor(numpy.ones((4, HIDDEN), numpy.float32)), Tensor(numpy.zeros((4, 8), numpy.float32)))
        optimizer(gradients)


def phase(name):
    print("PHASE " + name, flush=True)


def main():
    params_dict = load_checkpoint()
    print("ACCOUNT " + json.dumps({"copy_bytes": sum(a.nbytes for a in params_dict.values()), "copy_blocks": len(params_dict),
                                   "largest_bytes": max(a.nbytes for a in params_dict.values())}), flush=True)
    phase("t1")
    model = Model(params_dict)
    phase("t2")
    if HEALTHY:
        del params_dict
    gc.collect()
    train(model)
    final_params = model.to_numpy()
    phase("t3")
    if HEALTHY:
        del model
    gc.collect()
    inference = Model(final_params)
    if HEALTHY:
        del final_params
    gc.collect()
    phase("t4")
    answers = [inference.generate().asnumpy()]
    phase("t5")
    time.sleep(2)  # the sampler comes by
    return answers


main()
