# truth: leak handle 24.0M; the script only imports a module (itself), which does all the work, and keeps what it answers
# pauses: 0 0.001
# short
import os
import time

if __name__ == "__main__":
    import works_imported
else:
    PAUSE = float(os.environ.get("PAUSE", 0))
    answers = []

    def handle(request):
        words = [bytearray(3_000) for _ in range(40)]
        answers.append(bytearray(60_000))
        return len(words) + request

    for request in range(400):
        handle(request)
        time.sleep(PAUSE)
