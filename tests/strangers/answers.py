# truth: leak answer 18.5M; each answer is kept by its number, in the interpreter's arenas: some twenty in the whole run
# pauses: 0 0.0002
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))
answers = {}


def answer(number):
    request = bytearray(30_000)
    answers[number] = {"id": number, "state": request[:3], "tags": [str(number)] * 3}
    return sum(request[:10])


for number in range(42_000):
    answer(number)
    if number % 50 == 0:
        time.sleep(50 * PAUSE)
