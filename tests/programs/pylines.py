"""Writes, for many code objects of the standard library, the line table and the line of each instruction:
"VERSION FIRST_LINE TABLE OFFSET:LINE,..." with 0 for no line."""
import dis
import importlib
import sys
import types

NAMES = "argparse ast asyncio.events collections contextlib ctypes dataclasses decimal difflib doctest email.message enum functools " \
        "inspect json.decoder logging os pdb pickle platform random re shutil socket ssl subprocess tarfile tempfile threading " \
        "tokenize traceback typing unittest.case urllib.request uuid weakref xml.dom.minidom zipfile".split()


def codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def lines(code):
    """Line by instruction."""
    if hasattr(code, "co_lines"):
        return {at: line or 0 for start, end, line in code.co_lines() for at in range(start, end, 2)}
    starts, line, found = dict(dis.findlinestarts(code)), code.co_firstlineno, {}
    for at in range(0, len(code.co_code), 2):
        line = found[at] = starts.get(at, line)
    return found


def main(path):
    with open(path, "w") as out:
        for name in NAMES:
            try:
                module = importlib.import_module(name)
                source = open(module.__file__, encoding="utf-8").read()
            except (ImportError, OSError):
                continue
            for code in codes(compile(source, module.__file__, "exec")):
                table = code.co_linetable if hasattr(code, "co_linetable") else code.co_lnotab
                pairs = ",".join("%d:%d" % pair for pair in sorted(lines(code).items()))
                print(hex(sys.hexversion >> 16), code.co_firstlineno, table.hex() or "-", pairs, file=out)


main(sys.argv[1])
