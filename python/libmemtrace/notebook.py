"""%load_ext libmemtrace

    %%memtrace                  # runs the cell as a phase, then says what it kept and who had the memory at its peak
    %%memtrace leaks -n 5       # ... or what another command says of it
    %memtrace report            # of the whole kernel so far
    %memtrace html              # the page, in the notebook

A kernel that was not started under memtrace (`python -m libmemtrace.kernel install`) is recorded from %load_ext on, which says so. Where that
can't be, cells run as they are, and %memtrace says why.
"""
import os
import re
import shlex
import tempfile
from typing import Any, List

from IPython.core.magic import Magics as _Magics
from IPython.core.magic import line_cell_magic, magics_class

from . import marks, trace
from .fleet.words import size

OWNERS = re.compile(r"^LARGEST .*(?:\n +.*)*", re.M)  # what a report's headings name so


@magics_class
class Magics(_Magics):
    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self.cells = 0
        self.why_not = "this kernel is not recorded: python -m libmemtrace.kernel install"
        if trace.directory() is None:
            why = trace.attach()
            if why is None:
                marks._functions = marks._load()  # those of the library that is there now
                print("memtrace records this kernel from now on, to %s" % trace.directory())
            else:
                self.why_not += " (%s)" % why
        if hasattr(shell.compile, "_filename_map"):  # not in an old IPython
            self._number_cells(shell.compile)

    @staticmethod
    def _number_cells(compiler: Any) -> None:
        """Tells the trace which cell it is that ipykernel calls by a hash of its text. No block is at address 1: only the text is kept."""
        cache = compiler.cache

        def tell(file: str) -> None:
            if marks._functions and "ipykernel_" in file:
                marks._functions["label"](1, marks._text("In [%s] = %s" % (compiler._filename_map.get(file), file)))

        def numbered_cache(*args: Any, **named: Any) -> Any:
            file = cache(*args, **named)
            tell(file)
            return file

        for file in list(compiler._filename_map):  # cells that ran before
            tell(file)
        compiler.cache = numbered_cache

    @line_cell_magic
    def memtrace(self, line: str, cell: Any = None) -> None:
        words = shlex.split(line)
        if cell is None:
            if trace.directory() is None:
                print(self.why_not)
            else:
                self._show(words or ["report"])
            return
        self.cells += 1
        name = "cell %d" % self.cells
        with marks.phase(name):
            self.shell.run_cell(cell)
        if trace.directory() is None:
            return
        there = ["--from", "phase:" + name, "--to", "phase:" + name]
        if words:
            self._show([*words, *there])
        else:
            self._show_cell(name, there)

    def _show_cell(self, name: str, there: List[str]) -> None:
        """What the cell added to each kind of memory, and who had most at the peak."""
        answer = trace.ask("timeline", "--by", "phase")
        rows = [row for row in (answer or {}).get("phases", ()) if row["phase"] == name and row["track"] != "map"]
        pools = {row["track"] for row in rows if row["track"].endswith(" pool")}
        for row in rows:
            if row["track"] + " pool" not in pools:
                kept, high = row["kept_bytes"], row["high_bytes"] - row["start_bytes"]
                print("%-12s %s%s by this cell, at most +%s" % ("heap" if row["track"] == "host" else row["track"], "+" if kept >= 0 else "", size(kept), size(high)))
        for owners in OWNERS.findall(trace.text("report", "-n", "5", *there) or ""):
            print(owners)

    def _show(self, words: List[str]) -> None:
        if words[0] == "html":
            self._show_page(words)
            return
        done = trace.run(*words)
        if done is not None:
            print((done.stdout + done.stderr).decode("utf-8", "replace"))

    def _show_page(self, words: List[str]) -> None:
        from IPython.display import HTML, display

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "memtrace.html")
            done = trace.run(*words, "-o", path)
            if done is None or done.returncode:
                print(done.stderr.decode("utf-8", "replace") if done else "")
                return
            with open(path, encoding="utf-8") as file:
                content = file.read()
        quoted = content.replace("&", "&amp;").replace('"', "&quot;")
        display(HTML('<iframe srcdoc="%s" width="100%%" height="800" style="border: 0"></iframe>' % quoted))
