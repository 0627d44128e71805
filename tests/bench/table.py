# SPDX-License-Identifier: BSD-2-Clause
"""Results as a table: for a terminal, and between the two marks of docs/benchmarks.md."""

import json
import os
import re

# One table a group of benchmarks.
BEGIN, END = "<!-- results of {}: tests/bench/run --update-docs -->", "<!-- /results of {} -->"


def number(value):
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 20 else f"{value:.2f}"


def cells(row):
    spread = f"{number(row['low'])} … {number(row['high'])}" if row["rounds"] > 1 else ""
    return [
        row["what"],
        f"{number(row['median'])} {row['unit']}",
        spread,
        row["aim"] or "",
        row.get("note", ""),
    ]


HEAD = ["what", "median", "rounds lie in", "aim", "of which"]


def plain(results):
    lines = [cells(row) for rows in results["benchmarks"].values() for row in rows]
    widths = [max(len(line[i]) for line in [HEAD, *lines]) for i in range(len(HEAD))]
    text = []
    for line in [HEAD, *lines]:
        text.append("  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip())
    return "\n".join(text)


def about(results, names):
    m = results["machine"]
    where = "virtual machine, " if m["virtual"] else ""
    pinned = "the target alone on one of them" if m["pinned"] else "shared by all"
    rounds = max(row["rounds"] for name in names for row in results["benchmarks"][name])
    took = sum(results["took_s"][name] for name in names)
    return (
        f"{results['date']}, kprof {results['kprof']} ({results['commit']}), "
        f"PyTorch {results['torch']}, {where}{m['cpus']} CPUs ({m['cpu']}; {pinned}), "
        f"{m['memory_gb']:.0f} GB, Linux {m['kernel']}, up to {rounds} rounds, "
        f"{took:.0f} s in all, load before it {m['load_before']:.1f}."
    )


def markdown(results, names):
    lines = [about(results, names), "", f"| {' | '.join(HEAD)} |", "|---|---:|---|---|---|"]
    for name in names:
        lines += [f"| {' | '.join(cells(row))} |" for row in results["benchmarks"][name]]
    return "\n".join(lines)


def updated(text, results, group, names):
    """The document, with this group's table in the place of the one that was there."""
    begin, end = BEGIN.format(group), END.format(group)
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.S)
    if not pattern.search(text):
        raise ValueError(f"the marks '{begin}' and '{end}' are not there")
    return pattern.sub(lambda _: f"{begin}\n{markdown(results, names)}\n{end}", text)


def update(path, results, group, names):
    with open(path, encoding="utf-8") as f:
        text = updated(f.read(), results, group, names)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def save(path, results):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(results, f, indent=1, ensure_ascii=False)
        f.write("\n")
