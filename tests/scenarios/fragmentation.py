"""Fragmentation: of nine segments of 1 GiB every second 64 MiB were freed, 4.5 GiB are free in them, and 512 MiB fit nowhere. What the
request would have gone on to nothing tells: it is the first of its kind."""
# standin: DEVICES=10G CONTEXT=0.6G
from account import GIB, MIB, bytes_of, failing, pool, tell

SEGMENTS, PIECE = 9, 64 * MIB


def serve(requests):
    """Answers of one size, of which every second is done."""
    answers = [bytes_of(PIECE) for _ in range(requests)]
    return answers[::2]


def main():
    warm_up = [bytes_of(GIB) for _ in range(SEGMENTS)]
    del warm_up
    kept = serve(SEGMENTS * GIB // PIECE)
    before = pool()
    tell(verdict="fragmentation", unused_bytes=before["reserved_bytes"] - before["allocated_bytes"],
         fragmentation=1 - before["allocated_bytes"] / before["reserved_bytes"])
    with failing(512 * MIB):
        kept.append(bytes_of(512 * MIB))


main()
