# truth(keeps): leak log 36.0M; an audit table in sqlite's memory takes a row for each request
# truth(prunes): passes log 1.2M; rows older than 100 requests are deleted
# pauses: 0 0.001
import os
import sqlite3
import sys
import time

PAUSE = float(os.environ.get("PAUSE", 0))
db = sqlite3.connect(":memory:")
db.execute("create table audit (number integer primary key, body blob)")


def log(number, body):
    db.execute("insert into audit values (?, ?)", (number, body))
    if sys.argv[1:] == ["prunes"]:
        db.execute("delete from audit where number < ?", (number - 100,))
    db.commit()


def request(number):
    body = os.urandom(12_000)
    log(number, body)
    return db.execute("select count(*), sum(length(body)) from audit where number > ?", (number - 5,)).fetchone()


for number in range(3000):
    request(number)
    time.sleep(PAUSE)
