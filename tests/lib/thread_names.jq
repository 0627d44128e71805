# SPDX-License-Identifier: BSD-2-Clause
# known.py's result: all threads that had a phase are called in $report what threading calls them.
([.pid as $pid | .phases[] | "\($pid)/\(.tid) \(.thread)"] | unique) as $said
| ($said - [$report[0].rows[].name]) as $missing
| if $missing != [] then error("threads without their names: \($missing)") else $said | length > 5 end
