# SPDX-License-Identifier: BSD-2-Clause
# Samples, of which two are in one period's distance: what the second stands for, less that distance, in the median.
[., .[1:]] | transpose | map(select(.[1]) |
	{weight: .[1].weight_ns, apart: (.[1].time_ns - .[0].time_ns)} | select(.apart < 1500000) | .weight - .apart | fabs)
| sort | {pairs: length, median_ns: .[length / 2 | floor]}
