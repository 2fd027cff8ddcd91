#!/usr/bin/env python3
"""The package libmemtrace without frameworks: silent and harmless where nothing is recorded; where something is, it finds the trace, asks the
command about it, follows it and writes the page. tests/long/python_package.py has the real frameworks."""
import ast
import json
import os
import re
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

PACKAGE = os.path.join(mt.TOP, "python")
ASK = """
import json, os, sys, time
import libmemtrace
from libmemtrace import trace, training
def hold():
    return [bytearray(1 << 20) for _ in range(20)]
loop = training.Training()
loop.begin()
loop.enter("load")
kept = hold()
loop.leave("load")
loop.step(1)
end = time.monotonic() + 60
while libmemtrace.loaded() and loop.metrics().get("memtrace/heap_bytes", 0) < 20 << 20 and time.monotonic() < end:
    time.sleep(0.1)
numbers = loop.metrics()
loop.end()
print(json.dumps([libmemtrace.directory(), (trace.ask("peak", "-n", "1") or {}).get("host"), numbers, loop.page(sys.argv[1]), trace.text("peak", "-n", "1") is not None]))
"""


def run(how, *words):
    return how([mt.python(), "-c", ASK, *words], env={"PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": "1"}, timeout=120)


def case_silent_without_the_library():
    folder = mt.scratch("page")
    done = run(mt.plain, folder)
    mt.equal((done.status, done.err, json.loads(done.out)), (0, "", [None, None, {}, None, False]))
    mt.equal(os.listdir(folder), [])


def case_finds_its_own_trace():
    folder = mt.scratch("page")
    done = run(mt.shimmed, folder)
    mt.equal((done.status, done.err), (0, ""), "%s" % done)
    directory, host, numbers, page, text = json.loads(done.out)
    mt.equal((os.path.realpath(directory), page, text), (os.path.realpath(done.trace.path), os.path.join(folder, "memtrace.html"), True))
    mt.check(host["bytes"] >= 20 << 20, host)
    mt.check(numbers["memtrace/heap_bytes"] >= 20 << 20 and numbers["memtrace/peak_heap_bytes"] >= numbers["memtrace/heap_bytes"], numbers)
    with open(page, encoding="utf-8") as file:
        mt.check(file.read(15).lower() == "<!doctype html>", page)
    phases = {row["phase"] for row in done.trace.settle().json("timeline", "--by", "phase")["phases"]}
    mt.check("load" in phases, phases)


WATCHED = """
from libmemtrace import training
class Parameter:
    requires_grad, is_leaf, grad, hooks = True, True, None, 0
    def register_post_accumulate_grad_hook(self, hook):
        self.hooks += 1
        return self
    def remove(self):
        self.hooks -= 1
class Model:
    def __init__(self):
        self.parameter = Parameter()
    def named_parameters(self):
        return [("w", self.parameter)]
    def named_buffers(self):
        return []
loop, model = training.Training(metrics=False, page=False), Model()
loop.begin(model)
loop.begin(model)  # the first training failed: nobody said that it ended
hooks = model.parameter.hooks
loop.end()
print(hooks, model.parameter.hooks)
"""


def case_a_training_that_failed_leaves_no_hooks():
    done = mt.shimmed([mt.python(), "-c", WATCHED], env={"PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": "1"})
    mt.equal((done.status, done.out, done.err), (0, "1 0\n", ""))


CELLS = """
import sys, types
magic = types.ModuleType("IPython.core.magic")
magic.Magics, magic.magics_class, magic.line_cell_magic = type("Magics", (), {"__init__": lambda self, shell: setattr(self, "shell", shell)}), lambda c: c, lambda f: f
sys.modules.update({"IPython": types.ModuleType("IPython"), "IPython.core": types.ModuleType("IPython.core"), "IPython.core.magic": magic})
class Compiler:
    _filename_map = {}
    def cache(self, code, number, raw_code=None):
        file = "/tmp/ipykernel_77/%d.py" % len(code) if raw_code else "<ipython-input-%d-0a1b2c3d4e5f>" % number
        self._filename_map[file] = number
        return file
class Shell:
    compile = Compiler()
    def register_magics(self, magics):
        magics(self)
import libmemtrace
shell, scope = Shell(), {}
machinery = {}
exec(compile("def run_code(code, scope): exec(code, scope)", "/venv/site-packages/IPython/core/interactiveshell.py", "exec"), machinery)
def run(number, code, raw=None):
    machinery["run_code"](compile(code, shell.compile.cache(code, number, raw_code=raw), "exec"), scope)
run(1, "def early(): return bytearray(9 << 20)", "x")  # before %load_ext
libmemtrace.load_ipython_extension(shell)
run(2, "def load(n):\\n    return [bytearray(1 << 20) for _ in range(n)]", "x")
run(3, "kept = load(20)\\nmore = early()", "x")
run(4, "typed = \\\\\\n  bytearray(7 << 20)")
run(5, "import libmemtrace\\ndef holds():\\n    inner = bytearray(6 << 20)\\n    libmemtrace.holders('here')\\nholds()", "x")
"""


MAGIC = CELLS[:CELLS.index("class Shell")] + """
import traceback
class Shell:
    compile, execution_count, failed = Compiler(), 1, None
    def register_magics(self, magics):
        self.magics = magics(self)
    def transform_cell(self, cell):
        return cell
    def _showtraceback(self, kind, value, lines):
        print("SHOWN", self.failed, *lines)
    def run(self, number, line, cell):  # a cell of %%memtrace: IPython counts on before it runs
        self.compile.cache("magic", number, raw_code="magic %d" % number)
        self.execution_count = number + 1
        try:
            self.magics.memtrace(line, cell)
        except Exception as error:
            self.failed = number
            self._showtraceback(type(error), error, error._render_traceback_())
    def run_cell(self, cell):
        result = types.SimpleNamespace(error_before_exec=None, error_in_exec=None)
        try:
            exec(compile(cell, self.compile.cache(cell, self.execution_count, raw_code=cell), "exec"), scope)
        except Exception as error:
            result.error_in_exec = error
            self._showtraceback(type(error), error, [type(error).__name__, str(traceback.extract_tb(error.__traceback__)[-1].lineno if not isinstance(error, SyntaxError) else error.lineno)])
        return result
import libmemtrace
shell, scope = Shell(), {}
libmemtrace.load_ipython_extension(shell)
libmemtrace.load_ipython_extension(shell)  # %reload_ext
shell.run(4, "", "rows = []\\nfor i in range(30):\\n    rows.append(bytearray(1 << 20))")
shell.run(5, "peak -n 1", "    more = [bytearray(40 << 20),\\n            bytearray(1 << 20)]".replace("    more", "more"))
shell.run(6, "", "rows = []\\n1 / 0\\n")
shell.run(7, "", "rows = (")
shell.run(8, "", "%%time\\nrows")
"""


def case_cells_of_the_magic():
    """They have the number and the lines that their author sees, and what %%memtrace says is about them; a cell that fails has failed, which is said once."""
    done = mt.shimmed([mt.python(), "-c", MAGIC], env={"PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": "1"})
    mt.equal((done.status, done.err), (0, ""), "%s" % done)
    mt.check(re.match(r"heap +\+30\.\d MiB by this cell, at most \+30\.\d MiB\nLARGEST OWNERS .*\n +30\.0 MiB +\S+ % +<module> +In \[4\]:4\b", done.out), done.out)
    mt.check(re.search(r"^HEAP .*\n +\S+ MiB +\S+ % +\d+  <module>   In \[5\]:[23]\b", done.out, re.M), done.out)
    mt.equal(re.findall("SHOWN.*", done.out), ["SHOWN 6 ZeroDivisionError 3", "SHOWN 7 SyntaxError 2", "SHOWN 8 SyntaxError 1"])
    trace = done.trace.settle()
    names = {row["phase"] for row in json.loads(trace.tool("timeline", "--by", "phase", "--json").out)["phases"]}
    mt.check({"In [%d]" % number for number in (4, 5, 6, 7, 8)} <= names, names)
    mt.check("Magics." not in trace.tool("peak").out and "Magics._run" in trace.tool("peak", "--all-frames").out, "what runs cells is left out")


ASKED = """
import libmemtrace
from libmemtrace import trace
for i in range(12):
    rows = None
    with libmemtrace.phase("turn %d" % i):
        rows = [bytearray(1 << 20) for _ in range(30)]
    answer = trace.ask("timeline", "--by", "phase")
    print(*[row["kept_bytes"] >> 20 for row in answer["phases"] if row["phase"] == "turn %d" % i and row["track"] == "host"])
"""


def case_asked_at_once():
    """A command has all that the program did before it was started, however short before."""
    done = mt.shimmed([mt.python(), "-c", ASKED], env={"PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": "1"})
    mt.equal((done.status, done.out, done.err), (0, "30\n" * 12, ""))


def case_lines_of_cells():
    """Code of a cell has the number that its author sees, whatever IPython or ipykernel call its file; what runs cells is left out."""
    done = mt.shimmed([mt.python(), "-c", CELLS], env={"PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": "1", "MEMTRACE_HOLDERS": "1"})
    mt.equal((done.status, done.err), (0, ""), "%s" % done)
    trace = done.trace.settle()
    report = trace.summary()
    for owner in (r" 20\.0 MiB +\S+ % +load\S* +In \[2\]:2\b", r" 9\.0 MiB +\S+ % +early +In \[1\]:1\b", r" 7\.0 MiB +\S+ % +<module> +In \[4\]:[12]\b"):
        mt.check(re.search(owner, report), "%s is not in\n%s" % (owner, report))
    shown = trace.tool("peak").out
    mt.check("In [3]:1" in shown and "run_code" not in shown and "ipykernel" not in shown, shown)
    mt.check("run_code" in trace.tool("peak", "--all-frames").out, "what runs cells is a frame that says little")
    held = trace.tool("holders", "--snapshot", "1").out
    mt.check(re.search(r"holds \(In \[5\]:[1-4]\)", held), held)
    packed = os.path.join(trace.path, "packed.tar.zst")
    mt.equal(mt.execute([mt.MEMTRACE, "pack", "--redact", "-o", packed, trace.path]).status, 0)
    shown = mt.execute([mt.MEMTRACE, "peak", "-n", "all", packed]).out
    mt.check(all("In [%d]:" % number in shown for number in (1, 2, 3, 4)), "cells of a redacted trace: %s" % shown)
    named = set(re.findall(r"ipykernel_77/([^\"]+)\.py|ipython-input-4-([^\">]+)", mt.execute([mt.MEMTRACE, "dump", packed]).out))
    mt.check(len(named) == 5 and all(re.match(r"x[0-9a-f]{10}$", a or b) for a, b in named), "hashes of cells' code: %s" % named)


def case_one_implementation():
    """scripts/memtrace.py is the module of marks, and says what the package says."""
    mt.equal(os.path.realpath(os.path.join(mt.TOP, "scripts/memtrace.py")), os.path.join(PACKAGE, "libmemtrace/marks.py"))
    names = mt.execute([mt.python(), "-c", "import libmemtrace, memtrace; print(sorted(set(memtrace.__all__) - set(libmemtrace.__all__)))"],
                       env=mt.clean_env(PYTHONPATH=PACKAGE + ":" + os.path.join(mt.TOP, "scripts")))
    mt.equal((names.out, names.err), ("[]\n", ""))


def case_imports_nothing_of_others():
    """A framework is imported by the module that is named after it alone, and every file is Python 3.8's."""
    own = {"transformers": {"transformers"}, "lightning": {"lightning", "pytorch_lightning"}, "mindspore": {"mindspore"}, "notebook": {"IPython"}, "pytest_plugin": {"pytest"}}
    for name in sorted(os.listdir(os.path.join(PACKAGE, "libmemtrace"))):
        if not name.endswith(".py"):
            continue
        with open(os.path.join(PACKAGE, "libmemtrace", name), encoding="utf-8") as file:
            tree = ast.parse(file.read(), feature_version=(3, 8))
        found = {(alias.name if isinstance(node, ast.Import) else node.module).split(".")[0] for node in ast.walk(tree)
                 if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and not node.level) for alias in node.names}
        mt.equal(found - set(sys.stdlib_module_names), own.get(name[:-3], set()), name)


def case_entry_points_are_in_the_wheel():
    with open(os.path.join(mt.TOP, "python/pyproject.toml"), encoding="utf-8") as file:
        text = file.read()
    done = mt.execute([sys.executable, "-c", "import runpy; w = runpy.run_path(%r); print(w['entry_points']().decode())" % os.path.join(mt.TOP, "scripts/wheel")])
    want = re.search(r'entry-points\.pytest11\]\n(\w+) = "([\w.]+)"', text)
    mt.equal(done.out.split("\n")[:2], ["[pytest11]", "%s = %s" % want.groups()], "%s" % done)
    module = want[2].replace(".", "/") + ".py"
    mt.check(os.path.exists(os.path.join(PACKAGE, module)), module)


mt.main()
