# SPDX-License-Identifier: BSD-2-Clause
"""The simulated device's own truth contradicts itself nowhere: check_truth.py TRUTH PID"""

import sys
from truth import Truth

problems = Truth.load(sys.argv[1], sys.argv[2]).problems()
print(*problems[:5], sep="\n")
sys.exit(bool(problems))
