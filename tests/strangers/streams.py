# truth(open): leak hello -; each client has a stream that inflates, and nobody ends them (a zlib object is some 40 KB)
# truth(ends): passes hello 0; a client that leaves takes its stream along
# pauses: 0 0.002
import os
import sys
import time
import zlib

PAUSE = float(os.environ.get("PAUSE", 0))
packed = zlib.compress(bytes(range(256)) * 400)
clients = {}


def hello(number):
    clients[number] = zlib.decompressobj()


def message(number):
    return len(clients[number].decompress(packed))


for number in range(900):
    hello(number)
    message(number)
    if sys.argv[1:] == ["ends"]:
        del clients[number]
    time.sleep(PAUSE)
