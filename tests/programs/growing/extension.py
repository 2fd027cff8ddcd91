"""extension LIBRARY FORM: a C extension, called by ctypes, that never frees its answers (`keeps`), or does (`frees`)."""
import ctypes
import json
import sys
import time

library = ctypes.CDLL(sys.argv[1])
answer = library.keep_answer if sys.argv[2] == "keeps" else library.free_answer
EACH, UNITS = 100000, 600


def serve():
    parts = [bytearray(30000 + 8000 * k) for k in range(10)]
    answer(EACH)
    time.sleep(0.008)
    return len(parts)


begin = time.monotonic()
for _ in range(UNITS):
    serve()
kept = EACH * UNITS if sys.argv[2] == "keeps" else 0
print("ACCOUNT " + json.dumps({"kept_bytes": kept, "units": UNITS, "seconds": time.monotonic() - begin}), flush=True)
