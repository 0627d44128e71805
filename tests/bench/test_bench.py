# SPDX-License-Identifier: BSD-2-Clause
"""The arithmetic of the benchmarks, on made-up measurements of which the answers are known."""

import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import sampling  # noqa: E402
import table  # noqa: E402
from harness import Failed, FreeRun, row  # noqa: E402

MS = 1_000_000


def free_run(pieces):
    """Chunks of so many milliseconds each, one after the other: [(how many, milliseconds)]."""
    free = FreeRun(None)
    free.stamps = [0]
    for count, ms in pieces:
        for _ in range(count):
            free.stamps.append(free.stamps[-1] + ms * MS)
    return free


class Sampling(unittest.TestCase):
    def test_interpolated(self):
        points = [(0, 0), (10, 10), (20, 10)]
        for x, y in ((5, 5), (10, 10), (15, 10), (30, 10)):
            self.assertEqual(sampling.interpolated(points, x), y)
        self.assertRaises(Failed, sampling.interpolated, [(0, 0)], 5)

    def test_clock_is_the_kernels(self):
        with sampling.CpuClock(os.getpid()) as clock:
            end = os.times().user + 0.5
            while os.times().user < end:
                pass
        first, last = clock.points[0], clock.points[-1]
        self.assertGreater(last[1] - first[1], 0.1e9)
        self.assertAlmostEqual(clock.between(first[0], last[0]), last[1] - first[1])

    def test_lost_time(self):
        # 100 chunks of 10 ms, then a tool that makes them 15 ms, rest, one that stops the target once for 500 ms.
        free = free_run([(100, 10), (100, 15), (100, 10), (50, 10), (1, 510), (49, 10), (100, 10)])
        spans = {"slow": (1000 * MS, 2500 * MS), "stop": (3500 * MS, 5000 * MS)}
        found = sampling.compare_with_quiet(free, spans)
        self.assertAlmostEqual(found["slow"]["slower"], 1.5)
        self.assertAlmostEqual(found["slow"]["lost"], 0.5)
        self.assertAlmostEqual(found["stop"]["slower"], 1.5)
        self.assertAlmostEqual(found["stop"]["lost"], 0.5)

    def test_each_is_held_against_its_own_neighbours(self):
        # The machine becomes slower in between: neither tool costs anything.
        free = free_run([(300, 10), (300, 20)])
        spans = {"a": (1000 * MS, 2000 * MS), "b": (5000 * MS, 7000 * MS), "c": (2500 * MS, 2900 * MS)}
        found = sampling.compare_with_quiet(free, spans)
        self.assertAlmostEqual(found["a"]["lost"], 0)
        self.assertAlmostEqual(found["b"]["lost"], (found["b"]["slower"] - 1) * 2 / found["b"]["slower"])
        self.assertRaises(Failed, sampling.compare_with_quiet, free, {"x": (1 * MS, 2 * MS)})

    def test_perf_text(self):
        text = "1 2.0:\n\tff a\n\tfe _start\n\n1 2.1:\n\tff a\n\tfe main\n\n1 2.2:\n\n"
        self.assertEqual(sampling.count_perf(text), (2, 1))

    def test_total(self):
        self.assertEqual(sampling.total({"cpu": 2, "lost": 0.5}), 2.5)
        self.assertEqual(sampling.total({"cpu": 2, "lost": -0.5}), 2)

    def test_rows(self):
        def result(cpu, lost, samples):
            stacks = {"bpf_p50_ns": 2000, "bpf_p99_ns": 9000}
            made = {"cpu": cpu, "lost": lost, "slower": 1 + lost / 10, "whole": 0.5, "samples": samples}
            return {**made, "total": sampling.total(made), "taken": 1.0, "stacks": stacks}

        rounds = [{"kprof": result(1, 0, 990), "perf": result(8, 2, 495)}] * 3
        rows = {r["what"].split(": ", 1)[1]: r for r in sampling.rows_of("ops", rounds)}
        ratio = rows["its own CPU and what the target lost, kprof sample ÷ perf"]
        self.assertAlmostEqual(ratio["median"], 0.1)
        self.assertEqual(ratio["note"], "1.00 (1.00 + 0.00) ÷ 10.00 (8.00 + 2.00) s")
        self.assertEqual(rows["samples taken ÷ due"]["median"], 100)
        self.assertEqual(rows["a sample in BPF, p99"]["median"], 9)
        self.assertEqual(rows["stacks that are whole"]["note"], "perf 50 %")


class Table(unittest.TestCase):
    RESULTS = {
        "date": "d", "kprof": "v", "commit": "c", "torch": "t", "took_s": {"a": 1, "b": 2},
        "machine": {"virtual": True, "pinned": True, "cpus": 2, "cpu": "x", "memory_gb": 1, "kernel": "k",
                    "load_before": 0},
        "benchmarks": {"a": [row("first", [1, 2, 3], "s", "≤ 1")], "b": [row("second", [4], "")]},
    }

    def test_only_its_own_table_changes(self):
        marks = {g: (table.BEGIN.format(g), table.END.format(g)) for g in ("one", "two")}
        text = "".join(f"{g}\n{b}\nold {g}\n{e}\nafter\n" for g, (b, e) in marks.items())
        new = table.updated(text, self.RESULTS, "two", ["b"])
        self.assertIn("old one", new)
        self.assertNotIn("old two", new)
        self.assertIn("| second | 4.00  |", new)
        self.assertNotIn("first", new)
        self.assertEqual(new, table.updated(new, self.RESULTS, "two", ["b"]))
        self.assertRaises(ValueError, table.updated, "no marks", self.RESULTS, "two", ["b"])


if __name__ == "__main__":
    unittest.main()
