"""%load_ext libmemtrace

    %%memtrace                  # runs the cell as a phase, then says what it kept and who had the memory at its peak
    %%memtrace leaks -n 5       # ... or what another command says of it
    %memtrace report            # of the whole kernel so far
    %memtrace html              # the page, in the notebook

A kernel that was not started under memtrace (`python -m libmemtrace.kernel install`) is recorded from %load_ext on, which says so. Where that
can't be, cells run as they are, and %memtrace says why.
"""
import ast
import asyncio
import inspect
import os
import re
import shlex
import tempfile
from typing import Any, Dict, List, Optional

from IPython.core.magic import Magics as _Magics
from IPython.core.magic import line_cell_magic, magics_class

from . import marks, trace
from .fleet.words import size

OWNERS = re.compile(r"^LARGEST .*(?:\n +.*)*", re.M)  # what a report's headings name so


def _with_first_line(cell: str) -> str:
    """Another cell magic must come first; else a comment is where %%memtrace was, as far in as the rest."""
    text = cell.lstrip("\n")
    return cell if text.startswith("%%") else "%s# %%%%memtrace\n%s" % (text[:len(text) - len(text.lstrip(" \t"))], cell)


@magics_class
class Magics(_Magics):
    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self.number = 0      # of the cell that was compiled last: the one that runs
        self.inside = False  # a cell of %%memtrace
        self.runs: Dict[str, int] = {}  # of it, by the phase's name
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

    def _number_cells(self, compiler: Any) -> None:
        """Tells the trace which cell it is that ipykernel calls by a hash of its text. No block is at address 1: only the text is kept. What
        %%memtrace runs is the cell that it stands in, though IPython has begun to count the next one."""
        cache = getattr(compiler.cache, "memtrace", compiler.cache)  # %reload_ext

        def tell(file: str) -> None:
            if marks._functions and "ipykernel_" in file:
                marks._functions["label"](1, marks._text("In [%s] = %s" % (compiler._filename_map.get(file), file)))

        def numbered_cache(code: Any, number: int = 0, *args: Any, **named: Any) -> Any:
            self.number = self.number if self.inside else number
            file = cache(code, self.number, *args, **named)
            tell(file)
            return file

        for file, number in list(compiler._filename_map.items()):  # cells that ran before
            tell(file)
            self.number = number
        numbered_cache.memtrace = cache  # type: ignore[attr-defined]
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
        if asyncio._get_running_loop() is not None:
            self._refuse_await(cell)
        name = "In [%d]" % (self.number or self.shell.execution_count)
        self.runs[name] = self.runs.get(name, 0) + 1
        if self.runs[name] > 1:  # a script of cells, or a loop
            name += " (%d)" % self.runs[name]
        with marks.phase(name):
            error = self._run(cell)
        if trace.directory() is not None:
            there = ["--from", "phase:" + name, "--to", "phase:" + name]
            if words:
                self._show([*words, *there])
            else:
                self._show_cell(name, there)
        if error is not None:
            raise error

    def _run(self, cell: str) -> Optional[BaseException]:
        """As a cell of its own would run, its lines counted from %%memtrace's on. The exception that it ended with, which shows the cell's own
        traceback when it is raised again: the cell has failed."""
        shell = self.shell
        shown: Dict[int, Any] = {}
        show, self.inside = shell._showtraceback, True
        shell._showtraceback = lambda kind, value, lines: shown.update({id(value): lines})
        try:
            result = shell.run_cell(_with_first_line(cell))
        finally:
            shell._showtraceback, self.inside = show, False
        error: Optional[BaseException] = result.error_before_exec or result.error_in_exec
        lines = shown.get(id(error))
        if error is not None and lines is not None:
            if isinstance(error, SyntaxError):  # IPython shows each in its own way, with all calls that led here
                error = type("SyntaxError", (Exception,), {})(str(error))
            error._render_traceback_ = lambda: lines  # type: ignore[union-attr]
        return error

    def _refuse_await(self, cell: str) -> None:
        from IPython.core.error import UsageError

        try:
            code = compile(self.shell.transform_cell(cell), "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except SyntaxError:
            return  # it is said where the cell runs
        if code.co_flags & inspect.CO_COROUTINE:
            raise UsageError("%%memtrace can't run a cell that awaits, as its kernel waits already; put around it: with libmemtrace.phase('NAME'):")

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
        from IPython.display import display

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "memtrace.html")
            done = trace.run(*words, "-o", path)
            if done is None or done.returncode:
                print(done.stderr.decode("utf-8", "replace") if done else "")
                return
            with open(path, encoding="utf-8") as file:
                content = file.read()
        quoted = content.replace("&", "&amp;").replace('"', "&quot;")
        frame = '<iframe srcdoc="%s" width="100%%" height="800" style="border: 0"></iframe>' % quoted
        display({"text/html": frame, "text/plain": "the page of %s" % trace.directory()}, raw=True)
