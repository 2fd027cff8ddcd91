"""A chat server of asyncio: each connection has a buffer of its own in a registry, and those whose client went silent are never taken out of it"""
# truth: leak connections.py register
import asyncio
import sys

FORGET = "twin" in sys.argv or "release" in sys.argv
registry = {}


def register(number):
    registry[number] = {"inbox": bytearray(48000), "seen": []}
    return registry[number]


async def talk(reader, writer):
    number = int((await reader.readline()).split()[1])
    state = register(number)
    while line := await reader.readline():
        message = bytearray(line) * 800
        state["seen"].append(len(message))
        writer.write(b"ok\n")
        await writer.drain()
    if FORGET or number % 3:
        del registry[number]
    writer.close()


async def client(port, number):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"hello %d\n" % number)
    for turn in range(6):
        writer.write(b"turn %d of %d\n" % (turn, number))
        await reader.readline()
    writer.close()
    await writer.wait_closed()


async def main():
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for number in range(0, 1600, 4):
        await asyncio.gather(*(client(port, number + i) for i in range(4)))


asyncio.run(main())
