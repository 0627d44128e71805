# SPDX-License-Identifier: BSD-2-Clause
"""Runs without end, two calls deep."""


def innermost():
    print("READY 1", flush=True)
    while True:
        pass


def outer():
    innermost()


outer()
