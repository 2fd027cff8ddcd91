"""A server that remembers each session by one line, and each answer for an audit by another: two dictionaries, and nobody forgets from either"""
# truth: leak two_lists.py remember, note
import sys
import time

KEEP = 20 if "twin" in sys.argv or "release" in sys.argv else 10 ** 9
sessions, audit = {}, {}


def remember(request):
    sessions[request] = bytearray(70000)


def note(request):
    audit[request] = bytearray(45000)


def answer(request):
    words = [bytearray(20000) for _ in range(10)]
    time.sleep(0.003)
    return b"".join(words)


def main():
    for request in range(900):
        answer(request)
        remember(request)
        note(request)
        sessions.pop(request - KEEP, None)
        audit.pop(request - KEEP, None)


main()
