#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `dyno` sends and prints, for tests: written to the protocol, with the options of dyno that tests need.

    dyno.py gputrace --log-file PATH [--pids N,N] [--job-id N] [--duration-ms N | --iterations N] [--process-limit N]
                     [--profile-start-time MS] [--profile-start-iteration-roundup N] [--profile-memory] [--fail-on-no-process]
            status | version | dcgm-pause | dcgm-resume | raw JSON
"""

import argparse
import json
import socket
import struct
import sys


def ask(text, args):
    """The answer's text; None: the connection was closed without one."""
    with socket.create_connection((args.hostname, args.port)) as s:
        s.sendall(struct.pack("=i", len(text)) + text)
        data = b""
        while piece := s.recv(65536):
            data += piece
    if not data:
        return None
    (length,) = struct.unpack("=i", data[:4])
    if length != len(data) - 4:
        sys.exit(f"the answer has {len(data) - 4} bytes, not {length}")
    return data[4:].decode()


def config(args):
    lines = [f"ACTIVITIES_LOG_FILE={args.log_file}"]
    if args.iterations > 0:
        lines += ["PROFILE_START_ITERATION=0", f"PROFILE_START_ITERATION_ROUNDUP={args.profile_start_iteration_roundup}",
                  f"ACTIVITIES_ITERATIONS={args.iterations}"]
    else:
        lines += [f"PROFILE_START_TIME={args.profile_start_time}", f"ACTIVITIES_DURATION_MSECS={args.duration_ms}"]
    lines += [f"PROFILE_REPORT_INPUT_SHAPES={str(args.record_shapes).lower()}"]
    if args.profile_memory:
        lines += ["PROFILE_PROFILE_MEMORY=true", "PROFILE_MEMORY=true", f"PROFILE_MEMORY_DURATION_MSECS={args.duration_ms}"]
    lines += ["PROFILE_WITH_STACK=false", "PROFILE_WITH_FLOPS=false", "PROFILE_WITH_MODULES=false"]
    return "\\n".join(lines + args.config)


def gputrace(args):
    # As dyno does it: pasted, with line ends as the only thing that is escaped.
    text = (f'{{"fn":"setKinetOnDemandRequest","config":"{config(args)}","job_id":{args.job_id},"pids":[{args.pids}],'
            f'"process_limit":{args.process_limit}}}')
    answer = ask(text.encode(), args)
    print(f"response length = {len(answer)}\nresponse = {answer}")
    matched = json.loads(answer)["processesMatched"]
    if not matched:
        print("No processes were matched, please check --job-id or --pids flags")
        sys.exit(1 if args.fail_on_no_process else 0)
    print(f"Matched {len(matched)} processes")
    for pid in matched:
        print("   ", args.log_file.replace(".json", f"_{pid}.json"))
        if args.profile_memory:
            print("   ", f"/tmp/memory_snapshot_{pid}.pickle")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hostname", default="localhost")
    parser.add_argument("--port", type=int, default=1778)
    commands = parser.add_subparsers(dest="command", required=True)
    trace = commands.add_parser("gputrace")
    trace.add_argument("--log-file", required=True)
    trace.add_argument("--pids", default="0")
    for name, value in (("job-id", 0), ("duration-ms", 500), ("iterations", -1), ("profile-start-time", 0), ("process-limit", 3),
                        ("profile-start-iteration-roundup", 1)):
        trace.add_argument(f"--{name}", type=int, default=value)
    trace.add_argument("--record-shapes", action="store_true")
    trace.add_argument("--profile-memory", action="store_true")
    trace.add_argument("--fail-on-no-process", action="store_true")
    trace.add_argument("--config", action="append", default=[], metavar="KEY=VALUE", help="which dyno cannot send")
    simple = {"status": "getStatus", "version": "getVersion", "dcgm-pause": "dcgmProfPause", "dcgm-resume": "dcgmProfResume"}
    for name in simple:
        commands.add_parser(name)
    commands.add_parser("raw").add_argument("json")
    args = parser.parse_args()
    if args.command == "gputrace":
        return gputrace(args)
    text = args.json if args.command == "raw" else json.dumps({"fn": simple[args.command], "duration_s": 300})
    answer = ask(text.encode(), args)
    if answer is None:
        sys.exit("the connection was closed without an answer")
    print(f"response length = {len(answer)}\nresponse = {answer}")


main()
