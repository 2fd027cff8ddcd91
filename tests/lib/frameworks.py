"""Python that has a framework, in an environment of its own in the build folder, or named by the environment."""
import os

import mt


def interpreter(name, imports, *packages):
    """NAME_PYTHON, or build/venv-NAME with those packages, which is made where it is missing."""
    named = os.environ.get(name.upper() + "_PYTHON")
    place = os.path.join(mt.BUILD, "venv-" + name)
    if named:
        return named
    if not os.path.exists(os.path.join(place, "bin/python")):
        mt.execute([mt.python(), "-m", "venv", place], timeout=300)
    path = os.path.join(place, "bin/python")
    if mt.execute([path, "-c", "import " + imports], timeout=300).status != 0:
        done = mt.execute([path, "-m", "pip", "install", "-q", *packages], timeout=1200)
        if done.status != 0:
            mt.skip("%s can't be had: %s" % (name, done.err[-200:]))
    return path


def jax():
    return interpreter("jax", "jax, xla_plugins.xla_cpu_pjrt, flax, optax", "jax==0.10.2", "jaxlib==0.10.2", "xla-cpu-pjrt==0.0.1", "flax", "optax")


def tensorflow():
    return interpreter("tensorflow", "tensorflow", "tensorflow-cpu==2.21.0")
