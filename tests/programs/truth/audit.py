"""A service with a database in memory: each change is written down in a table that nobody prunes"""
# truth: leak audit.py change
import sqlite3
import sys


def change(db, number):
    db.execute("UPDATE stock SET text = ? WHERE id = ?", ("state %d " % number * 20, number % 50))
    db.execute("INSERT INTO audit VALUES (?, ?)", (number, "change %d, " % number * 120))


def main():
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE stock (id INTEGER PRIMARY KEY, text TEXT)")
    db.execute("CREATE TABLE audit (id INTEGER PRIMARY KEY, text TEXT)")
    db.executemany("INSERT INTO stock VALUES (?, '')", [(i,) for i in range(50)])
    for number in range(15000):
        change(db, number)
        if "twin" in sys.argv and number % 100 == 0:
            db.execute("DELETE FROM audit WHERE id < ?", (number - 200,))
    print(db.execute("SELECT count(*) FROM audit").fetchone())


main()
