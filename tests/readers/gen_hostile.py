#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prints stacks with names that no format likes, for tests/bench/gen_stacks. The same text each time."""

NAMES = [  # as the text has them: bytes that a line can't have as \xNN
    r"quote\x22apostrophe'backslash\x5c", "]]><script>alert(1)</script>", "a;b;c", r"new\x0aline\x0d\x09tab", r"bell\x07esc\x1b[31mred",
    r"bad\xffutf\xc3", r"cut\xe2\x82", "&amp;&#0;&lt;", "<svg onload='x'>", "--> <!-- ", "${x} %s %n %d", "ünïcödé 函数 🔥", "  spaces  ",
    "ends with a number 123", r"c1\xc2\x85control", r"turned\xe2\x80\xaearound", r"no\xef\xbf\xbfcharacter", "operator<=>", "x" * 20000,
    "std::vector<" * 400 + "int" + ">" * 400, "_[k]", "[incomplete]", "__proto__", "constructor", r"\x7fdelete", "𝔘𝔫𝔦 ｗｉｄｅ 全角",
]
WHOLE = 1 << 8


def native(name, module="/usr/lib/lib&amp;\"'<odd>.so"):
    return f"N|{module}|00ff|0x10||{name}||0"


def main():
    print("meta\tstacks\t{\"frequency_hz\": 97.5}\nsource\tsamples\t100\t0")
    print("process\t4242\tpy\\xff\\x0athon\tpython3 '</title>' \\x22]]>\\x22 \\xff\\xfe --long " + "argument " * 60)
    print("thread\t4242\t4242\tmain;\\x22]]>\nthread\t4242\t4243\t\\xff\\x01")
    for i, name in enumerate(NAMES):
        print("\t".join(["sample", str(i % 2), str(5 + i), "10000000", str(WHOLE), native("main"), native(name),
                         f"P|||0|aten::\\x22odd\\x0a;{i}|py {name}|/tmp/a<b>&\\x22\\xff/{i};.py|{i + 1}"]))
    deep = [f"P|||0||f{i}|/a.py|{i}" for i in range(500)]
    print("\t".join(["sample", "0", "400", "10000000", str(WHOLE)] + deep))
    print("sample\t1\t3\t10000000\t0")
    print("sample\t1\t4\t10000000\t%d\t%s" % (WHOLE | 2, native("sleeps")))
    print("sample\t1\t2\t10000000\t%d\t%s" % (WHOLE | 1 << 16, native("cut")))
    print("\t".join(["span", "0", "aten::odd", native("main"), native("a;b"), "P|||0||f\\x22|/x\\x0a.py|3"]))


main()
