"""Jobs of a thread pool: their futures stay in a list with their results, of which only the length was wanted"""
# truth: leak jobs.py render
import sys
from concurrent.futures import ThreadPoolExecutor


def render(page):
    lines = ["line %d of page %d" % (line, page) for line in range(200)]
    return bytearray("\n".join(lines), "ascii") * 16


def main():
    total, futures = 0, []
    with ThreadPoolExecutor(4) as pool:
        for page in range(1200):
            future = pool.submit(render, page)
            total += len(future.result())
            if "twin" not in sys.argv:
                futures.append(future)
    print(total)


main()
