"""Libraries of others that the Python package is for, at their current versions, in an environment beside that of the tests' (scripts/setup
long). Where it is missing a test is skipped."""
import os

import mt

VENV = os.environ.get("VENV_REACH", os.path.join(mt.TOP, "build/venv-reach"))
PACKAGE = os.path.join(mt.TOP, "python")


def python(*modules):
    path = os.path.join(VENV, "bin/python")
    if not os.path.exists(path):
        mt.skip("no environment with other libraries (scripts/setup long)")
    for module in modules:
        if mt.execute([path, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec(%r) is None)" % module]).status:
            mt.skip("no %s in %s (scripts/setup long)" % (module, VENV))
    return path


def environment(**more):
    """With the package and the built program."""
    return dict({"PYTHONPATH": PACKAGE, "PATH": mt.BUILD + ":" + os.environ["PATH"], "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}, **more)
