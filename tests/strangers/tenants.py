# truth: leak connect -; a connection for each tenant stays open with its cache of pages, and all are closed at the end
# pauses: 0 0.01
import os
import sqlite3
import tempfile
import time

PAUSE = float(os.environ.get("PAUSE", 0))
folder = tempfile.mkdtemp()
path = os.path.join(folder, "tenants.db")
first = sqlite3.connect(path)
first.execute("create table rows (id integer primary key, text blob)")
first.executemany("insert into rows (text) values (?)", ((bytes(1000),) for _ in range(3000)))
first.commit()
first.close()
connections = {}


def connect(tenant):
    connections[tenant] = sqlite3.connect(path)
    cursor = connections[tenant].execute("select sum(length(text)) from rows where id % 10 = ?", (tenant % 10,))
    return cursor.fetchone()[0]


for tenant in range(120):
    connect(tenant)
    rows = [bytearray(100_000) for _ in range(100)]
    time.sleep(PAUSE)
for one in connections.values():
    one.close()
os.unlink(path)
os.rmdir(folder)
