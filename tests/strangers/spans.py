# truth(root): leak start 30.0M; every request's span becomes a child of one that is open as long as the service
# truth(batches): passes start 600k; spans are exported in batches of 64
# pauses: 0 0.001
import json
import os
import sys
import time

PAUSE = float(os.environ.get("PAUSE", 0))


class Span:
    def __init__(self, name, parent):
        self.name, self.attributes, self.children = name, {}, []
        if parent:
            parent.children.append(self)


def start(name, parent, body):
    span = Span(name, parent)
    span.attributes["body"] = body * 1000
    return span


def export(root):
    return len(json.dumps([[c.name, c.attributes] for c in root.children]))


service = Span("service", None)
for number in range(3000):
    span = start("GET /%d" % number, service, "%010d" % number)
    answer = [span.attributes["body"].upper() for _ in range(3)]
    if sys.argv[1:] == ["batches"] and len(service.children) == 64:
        export(service)
        service.children.clear()
    time.sleep(PAUSE)
