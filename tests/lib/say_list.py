# SPDX-License-Identifier: BSD-2-Clause
"""Who is no daemon of kprof's, and answers one client with its input, as a list of processes, by a pipe.

    say_list.py SOCKET <LIST
"""
import os
import socket
import sys

listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print("ready", flush=True)
client, _ = listener.accept()
client.makefile("rb").readline()
end, to = os.pipe()
socket.send_fds(client, [b'{"ok":true}\n'], [end])
client.close()
os.write(to, sys.stdin.buffer.read())
