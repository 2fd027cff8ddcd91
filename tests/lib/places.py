"""Places in Python code as screens name them, `train.py:12 main`: whether there is such a line, in that function or calling it. Files are
the scenarios', else libraries'."""
import ast
import fnmatch
import functools
import glob
import os

import gpu
import mt


@functools.lru_cache(None)
def functions_of(path):
    """[(first line, last line, qualified name)] of a Python file, without the <locals>."""
    found = []

    def walk(node, names):
        for child in ast.iter_child_nodes(node):
            inner = names
            if isinstance(child, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
                inner = names + [child.name]
                found.append((child.lineno, child.end_lineno, ".".join(inner)))
            elif isinstance(child, (ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp, ast.Lambda)):
                kind = {"ListComp": "listcomp", "DictComp": "dictcomp", "SetComp": "setcomp", "GeneratorExp": "genexpr", "Lambda": "lambda"}
                inner = names + ["<%s>" % kind[type(child).__name__]]
                found.append((child.lineno, child.end_lineno, ".".join(inner)))
            walk(child, inner)

    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    walk(tree, [])
    found.append((1, 1 << 30, "<module>"))
    return found


@functools.lru_cache(None)
def libraries():
    """{name: paths} of all files of libraries."""
    found = {}
    for top in (os.path.join(gpu.VENV, "lib"), os.path.join(mt.VENV, "lib"), os.path.join(mt.TOP, "build/venv-mindspore"), os.path.dirname(os.__file__)):
        for folder, _, names in os.walk(top):
            for name in names:
                found.setdefault(name, []).append(os.path.join(folder, name))
    return found


@functools.lru_cache(None)
def files_of(name):
    """Files of that name (a pattern, too): the scenarios', else libraries'."""
    own = glob.glob(os.path.join(gpu.SCENARIOS, "**", name), recursive=True)
    return own or [path for known in fnmatch.filter(libraries(), name) for path in libraries()[known]]


def source(place):
    """The text of the line, or of the first line with text in any file of that name."""
    name, _, number = place.rpartition(":")
    for path in files_of(name):
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
        if int(number) <= len(lines) and lines[int(number) - 1].strip():
            return lines[int(number) - 1].strip()
    return None


@functools.lru_cache(None)
def own_functions():
    return {full for path in glob.glob(os.path.join(gpu.SCENARIOS, "**", "*.py"), recursive=True) for _, _, full in functions_of(path)}


def is_function(name):
    """Else it is a word of a sentence."""
    return "." in name or "<" in name or any(full.rpartition(".")[2] == name for full in own_functions())


def is_in(place, function):
    """There is such a line, and it is in that function."""
    name, _, number = place.rpartition(":")
    short = function.lstrip(".") if function.startswith("..") else "." + function
    return any(first <= int(number) <= last and ("." + full).endswith(short)
               for path in files_of(name) for first, last, full in functions_of(path))


def calls(place, function):
    """A phase is a line and what it calls: by name, by its class, or as a module's forward()."""
    parts = function.split(".")
    return function in own_functions() and (parts[-1] == "forward" or any(part + "(" in source(place) for part in parts))
