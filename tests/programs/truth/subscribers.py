"""A broker of asyncio: who leaves is not taken off its topic, and its queue goes on being filled"""
# truth: leak subscribers.py publish
import asyncio
import sys

LEAVE = "twin" in sys.argv
topics = {"news": []}


async def publish(number):
    for queue in topics["news"]:
        queue.put_nowait(bytes(9000 + number % 7))


async def read(queue, count):
    for _ in range(count):
        await queue.get()


async def main():
    staying = [asyncio.Queue() for _ in range(4)]
    topics["news"] += staying
    for number in range(900):
        if number % 90 == 0:
            guest = asyncio.Queue()
            topics["news"].append(guest)
        await publish(number)
        await asyncio.gather(*(read(queue, 1) for queue in staying))
        if number % 90 == 10 and LEAVE:
            topics["news"].remove(guest)


asyncio.run(main())
