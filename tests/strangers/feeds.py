# truth: leak parse -; of each feed the tree stays in `seen`, through one element
# pauses: 0 0.005
import os
import time
import xml.etree.ElementTree as ElementTree

PAUSE = float(os.environ.get("PAUSE", 0))
TEXT = "<feed>" + "".join("<item n='%d'><title>title %d</title><body>%s</body></item>" % (i, i, "x" * 600) for i in range(60)) + "</feed>"
seen = []


def parse(number):
    tree = ElementTree.fromstring(TEXT.replace("title", "title%d" % number))
    seen.append(list(tree.iter("item")))
    return len(seen)


for number in range(300):
    parse(number)
    drafts = [bytearray(30_000) for _ in range(10)]
    time.sleep(PAUSE)
