"""The parameters of Qwen3-14B in 16 bits (29,536,614,400 bytes), layer by layer: as arrays, and as a model on the device. Nobody
writes to them: what is allocated is real, what would be computed is not."""
import os

import numpy

import npu

SCALE = int(os.environ.get("SCENARIO_SCALE", "1"))  # every matrix has so many times fewer rows
LAYERS, HIDDEN, INNER, KEYS, HEAD, VOCABULARY = 40, 5120, 17408, 1024, 128, 151936


def scaled(rows, *columns):
    return (rows // SCALE, *columns) if columns else (rows,)


def layer_shapes(layer):
    prefix = "model.layers.%d." % layer
    yield prefix + "input_layernorm.weight", scaled(HIDDEN)
    yield prefix + "self_attn.q_proj.weight", scaled(HIDDEN, HIDDEN)
    yield prefix + "self_attn.k_proj.weight", scaled(KEYS, HIDDEN)
    yield prefix + "self_attn.v_proj.weight", scaled(KEYS, HIDDEN)
    yield prefix + "self_attn.o_proj.weight", scaled(HIDDEN, HIDDEN)
    yield prefix + "self_attn.q_norm.weight", scaled(HEAD)
    yield prefix + "self_attn.k_norm.weight", scaled(HEAD)
    yield prefix + "mlp.gate_proj.weight", scaled(INNER, HIDDEN)
    yield prefix + "mlp.up_proj.weight", scaled(INNER, HIDDEN)
    yield prefix + "mlp.down_proj.weight", scaled(HIDDEN, INNER)
    yield prefix + "post_attention_layernorm.weight", scaled(HIDDEN)


def shapes():
    yield "model.embed_tokens.weight", scaled(VOCABULARY, HIDDEN)
    for layer in range(LAYERS):
        yield from layer_shapes(layer)
    yield "model.norm.weight", scaled(HIDDEN)
    yield "lm_head.weight", scaled(VOCABULARY, HIDDEN)


def read_array(shape):
    return numpy.empty(shape, numpy.float16)


def load_checkpoint():
    return {name: read_array(shape) for name, shape in shapes()}


class Layer:
    def __init__(self, parameters, names):
        self.parameters = {name: self.load(parameters[name]) for name in names}

    def load(self, array):
        return npu.Tensor(array.shape, array.itemsize)


class Model:
    """A layer's parameters are on the device as soon as it was built from the dictionary."""

    def __init__(self, parameters):
        names = list(shapes())
        npu.account["tensor_bytes"] = [npu.size(shape, parameters[name].itemsize) for name, shape in names]
        self.layers = [Layer(parameters, [n for n, _ in names if not n.startswith("model.layers.")])]
        for layer in range(LAYERS):
            self.layers.append(Layer(parameters, [n for n, _ in layer_shapes(layer)]))

    def parameters(self):
        return {name: tensor for layer in self.layers for name, tensor in layer.parameters.items()}

    def train(self):
        """A step's activations come and go."""
        for _ in range(3):
            activations = [npu.Tensor(scaled(4096, 16384), 2) for _ in range(16)]
            npu.account["trained_peak"] = npu.account["device_peak"]
            del activations

    def to_numpy(self):
        return {name: numpy.empty(tensor.shape, numpy.float16) for name, tensor in self.parameters().items()}

    def kv_cache(self):
        return [npu.Tensor(scaled(30720, KEYS), 2) for _ in range(2 * LAYERS)]

    def activations(self):
        return [npu.Tensor(scaled(4096, 16384), 2) for _ in range(16)]

    def head_in_32_bits(self):
        return npu.Tensor(self.layers[0].parameters["lm_head.weight"].shape, 4)

    def generate(self):
        cache, activations = self.kv_cache(), self.activations()
        npu.account.update(cache_bytes=sum(t.bytes for t in cache), activations_bytes=sum(t.bytes for t in activations))
        head = self.head_in_32_bits()
        npu.account["head_bytes"] = head.bytes
        return [cache, activations, head]
