"""A notebook whose cell is run again and again: each result stands in Out, as in IPython, and nothing is taken out of it"""
# truth: leak [3] sample
import linecache
import sys

KEEP = 2 if "twin" in sys.argv or "release" in sys.argv else 10 ** 9
NAME = "<ipython-input-3-0a1b>"
CELL = """def sample(seed):
    frame = [bytearray(4000) for _ in range(100)]
    scratch = [bytearray(6000) for _ in range(150)]
    return frame if scratch else None

sample(number)
"""


def main():
    user, out = {}, {}
    linecache.cache[NAME] = (len(CELL), None, CELL.splitlines(True), NAME)
    head, _, last = CELL.rstrip().rpartition("\n")
    for number in range(200):
        user["number"] = number
        exec(compile(head, NAME, "exec"), user)
        out[number] = eval(compile("\n" * head.count("\n") + "\n" + last, NAME, "eval"), user)
        out.pop(number - KEEP, None)


main()
