# truth: leak handle 30.0M; a set keeps each task alive, and a task its result
# pauses: 0 0.002
import asyncio
import os

PAUSE = float(os.environ.get("PAUSE", 0))
background = set()


async def handle(number):
    parts = [bytearray(30_000) for _ in range(8)]
    await asyncio.sleep(0)
    return bytes(50_000) if parts else None


async def serve():
    for number in range(600):
        task = asyncio.create_task(handle(number))
        background.add(task)
        await task
        await asyncio.sleep(PAUSE)


asyncio.run(serve())
