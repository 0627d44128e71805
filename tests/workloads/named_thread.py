# SPDX-License-Identifier: BSD-2-Clause
"""A thread with a name of Python's works for a while; then it may become another program: named_thread.py [COMMAND…]"""

import os, sys, threading, time

threading.current_thread().name = "boss"
end = time.monotonic() + 5 # twice as long as kprof goes on with a name that it has read before
while time.process_time() < 0.6:
    pass
time.sleep(max(0, end - time.monotonic()))
if sys.argv[1:]:
    os.execv(sys.argv[1], sys.argv[1:])
