"""A healthy program whose modules need more than its own work, which is to keep WORK blocks of SIZE bytes.
usage: imports.py [FOLDER of a module of its own]"""
import sys

sys.path[1:1] = sys.argv[1:]
import asyncio, ctypes, email.mime.text, http.server, logging.config, multiprocessing.pool, unittest.mock, xml.dom.minidom  # noqa: E401, F401

if sys.argv[1:]:
    import works_while_imported  # noqa: F401

WORK, SIZE = 500, 3000
kept = []


def work():
    for _ in range(WORK):
        kept.append(bytearray(SIZE))


work()
print(len(kept))
