# SPDX-License-Identifier: BSD-2-Clause
# Samples (stackdump's lines), and what spin_cpu.py says that it spent: $spent.
($spent[0].stays / 6 + $spent[0].holes | sqrt * 1e9 / 997) as $sd
| (map(.weight_ns) | add) as $sampled | $spent[0] + {samples: length, sampled_ns: $sampled, sd_ns: $sd}
