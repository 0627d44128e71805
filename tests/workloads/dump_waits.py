# SPDX-License-Identifier: BSD-2-Clause
"""Waits for a line, two calls deep."""

import sys


def inner(): sys.stdin.readline()


def outer(): inner()


print("READY 1", flush=True)
outer()
