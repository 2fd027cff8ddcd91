# truth(leaves): leak subscribe 24.0M; a task for each visitor waits for news, and goes on waiting when the visitor has left
# truth(cancels): passes subscribe 0; the task is cancelled when the visitor leaves
# pauses: 0 0.002
import asyncio
import os
import sys

PAUSE = float(os.environ.get("PAUSE", 0))
tasks = set()


async def subscribe(news):
    seen = bytearray(40_000)
    async with news:
        await news.wait()
    return seen


async def visit(news):
    task = asyncio.create_task(subscribe(news))
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    for _ in range(6):
        page = bytearray(50_000)
        await asyncio.sleep(0)
        del page
    if sys.argv[1:] == ["cancels"]:
        task.cancel()


async def main():
    news = asyncio.Condition()
    for number in range(600):
        await visit(news)
        await asyncio.sleep(PAUSE)
    for task in tasks:
        task.cancel()


asyncio.run(main())
