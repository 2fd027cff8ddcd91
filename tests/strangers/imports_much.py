# truth: passes - -; imports much of the standard library and numpy, and does next to nothing
# short
import asyncio
import ctypes
import decimal
import email.mime.text
import http.client
import multiprocessing.pool
import sqlite3
import unittest
import xml.dom.minidom

import numpy as np

modules = (asyncio, ctypes, decimal, email, http, multiprocessing, sqlite3, unittest, xml)
assert len(modules) == 9 and np.ones(1000).sum() == 1000
