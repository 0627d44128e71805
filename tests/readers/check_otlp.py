#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""OTLP profiles, decoded by OpenTelemetry's own package, meet what each of the receivers demands.

    check_otlp.py FILE.otlp.pb[.gz] [REPORT.json [WAITS.json]]

REPORT.json: `kprof report --by function --json --limit 0` of the same capture, WAITS.json the same with --off-cpu. Each
function has as many samples there as in the file. Prints the resources, with their attributes, as JSON.
"""

import collections
import gzip
import json
import sys

from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as service

ON_CPU, OFF_CPU = ("samples", "count"), ("off_cpu", "nanoseconds")


def want(condition, words):
    if not condition:
        raise SystemExit(f"otlp: FAILED: {words}")


def decode(data):
    request = service.ExportProfilesServiceRequest()
    request.ParseFromString(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    return request


def unknown_fields(message):
    """Whether bytes were left that the protocol has no field for: another version's layout would look like that."""
    from google.protobuf.unknown_fields import UnknownFieldSet  # pylint: disable=import-outside-toplevel

    if len(UnknownFieldSet(message)):
        return True
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            parts = [value] if hasattr(value, "ListFields") else value
            if any(unknown_fields(part) for part in parts):
                return True
    return False


def is_zero(message):
    """Nothing is set, but for messages in which nothing is."""
    return all(field.type == field.TYPE_MESSAGE and is_zero(value) for field, value in message.ListFields())


def check_table(name, table, passed_on):
    want(len(table) >= 1, f"there is no table of {name}")
    first = table[0]
    want(first == "" or hasattr(first, "ByteSize") and (first.ByteSize() == 0 or passed_on and is_zero(first)),
         f"the first of the {name} is not empty: {first}")
    packed = [t if isinstance(t, str) else t.SerializeToString(deterministic=True) for t in table]
    want(len(set(packed)) == len(packed), f"one of the {name} is there twice")


def check_dictionary(d, passed_on):
    tables = {"mappings": d.mapping_table, "locations": d.location_table, "functions": d.function_table,
              "links": d.link_table, "strings": d.string_table, "attributes": d.attribute_table, "stacks": d.stack_table}
    for name, table in tables.items():
        check_table(name, table, passed_on)
    used = collections.defaultdict(set)

    def index(name, i):
        want(0 <= i < len(tables[name]), f"no {name} {i}")
        used[name].add(i)

    for m in d.mapping_table:
        index("strings", m.filename_strindex)
        for i in m.attribute_indices:
            index("attributes", i)
    for l in d.location_table:
        index("mappings", l.mapping_index)
        for line in l.lines:
            index("functions", line.function_index)
        for i in l.attribute_indices:
            index("attributes", i)
    for f in d.function_table:
        for i in (f.name_strindex, f.system_name_strindex, f.filename_strindex):
            index("strings", i)
    for a in d.attribute_table:
        index("strings", a.key_strindex)
    for s in d.stack_table:
        for i in s.location_indices:
            index("locations", i)
            want(i, "a frame that is not set")
    return tables, used, index


def check_profile(p, d, index, window):
    kind = (d.string_table[p.sample_type.type_strindex], d.string_table[p.sample_type.unit_strindex])
    want(kind in (ON_CPU, OFF_CPU), f"samples are {kind}")
    want(p.HasField("period_type"), "there is no period type")
    period = (d.string_table[p.period_type.type_strindex], d.string_table[p.period_type.unit_strindex])
    want((period, bool(p.period)) == (("cpu", "nanoseconds"), True) if kind == ON_CPU else
         (period, p.period) == (("", ""), 0), f"the period of {kind} is {p.period} {period}")
    for i in (p.sample_type.type_strindex, p.sample_type.unit_strindex, p.period_type.type_strindex, p.period_type.unit_strindex):
        index("strings", i)
    want(len(p.profile_id) == 16 and any(p.profile_id), "the profile's id")
    want(len(p.samples) > 0, "a profile without samples")
    want(p.time_unix_nano and p.duration_nano, "a profile without time")
    window.add((p.time_unix_nano, p.duration_nano))
    seen = set()
    for s in p.samples:
        index("stacks", s.stack_index)
        want(s.stack_index, "a sample without a stack")
        want(s.link_index == 0, "a link")
        want(len(s.values) == 1 and s.values[0] > 0, f"values {list(s.values)}")
        want(not s.timestamps_unix_nano, "times of samples")
        for i in s.attribute_indices:
            index("attributes", i)
        keys = [d.string_table[d.attribute_table[i].key_strindex] for i in s.attribute_indices]
        want(len(set(keys)) == len(keys), f"an attribute twice: {keys}")
        identity = (s.stack_index, tuple(sorted(s.attribute_indices)))
        want(identity not in seen, "two samples with one stack and the same attributes")
        seen.add(identity)
    return kind


def check_rules(request, passed_on=False):
    """What Pyroscope, Parca and OpenTelemetry's specification demand. Returns the profiles by kind.

    passed_on: a collector has written it anew, which sets the value of the empty attribute to an empty one.
    """
    want(not unknown_fields(request), "bytes that the protocol has no field for")
    tables, used, index = check_dictionary(request.dictionary, passed_on)
    profiles, window, ids = [], set(), set()
    want(len(request.resource_profiles) > 0, "no resources")
    for rp in request.resource_profiles:
        want(rp.HasField("resource"), "a resource without a description")
        keys = [a.key for a in rp.resource.attributes]
        want(len(set(keys)) == len(keys) and "service.name" in keys, f"attributes {keys}")
        want(all(a.value.WhichOneof("value") in ("string_value", "int_value") for a in rp.resource.attributes), "a value")
        want(len(rp.scope_profiles) == 1, "scopes")
        for sp in rp.scope_profiles:
            want(sp.HasField("scope") and sp.scope.name, "a scope without a name")
            want(len(sp.profiles) > 0, "a scope without profiles")
            kinds = [check_profile(p, request.dictionary, index, window) for p in sp.profiles]
            want(len(set(kinds)) == len(kinds), "two profiles of one kind")
            profiles += zip(kinds, sp.profiles)
            ids.update(p.profile_id for p in sp.profiles)
    want(len(window) == 1 and len(ids) == len(profiles), "times and ids of profiles")
    for name, table in tables.items():
        orphans = set(range(1, len(table))) - used[name]
        want(not orphans, f"{name} that nothing mentions: {[table[i] for i in sorted(orphans)[:3]]}")
    return profiles


def functions_of(stack, d):
    """Names, innermost first."""
    return [d.string_table[d.function_table[line.function_index].name_strindex]
            for i in d.stack_table[stack].location_indices for line in d.location_table[i].lines]


def by_function(profiles, kind, d):
    """(self, total) of each function; what calls itself counts once."""
    alone, whole = collections.Counter(), collections.Counter()
    for _, p in (x for x in profiles if x[0] == kind):
        for s in p.samples:
            names = functions_of(s.stack_index, d)
            # The innermost frame of a wait says what it was for.
            alone[names[1 if kind == OFF_CPU else 0]] += s.values[0]
            for name in set(names):
                whole[name] += s.values[0]
    return alone, whole


def attributes(rp):
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in rp.resource.attributes}


def compare(profiles, kind, d, report):
    """Each function of the report has the same numbers; functions of one name, of several modules, are added up."""
    alone, whole = by_function(profiles, kind, d)
    keys = ("self_samples", "samples") if kind == ON_CPU else ("self_ns", "total_ns")
    rows = [r for r in report["rows"] if not r["name"].startswith("[")]
    want(len(rows) > 0, "the report has no functions")
    once, own = collections.Counter(), collections.Counter()
    for r in rows:
        once[r["name"]] += 1
        own[r["name"]] += r[keys[0]]
    for name, value in own.items():
        want(alone[name] == value, f"{name}: itself {alone[name]} in the file, {value} in the report")
    for r in rows:
        want(once[r["name"]] > 1 or whole[r["name"]] == r[keys[1]],
             f"{r['name']}: {whole[r['name']]} in the file, {r[keys[1]]} in the report")


def main():
    with open(sys.argv[1], "rb") as file:
        request = decode(file.read())
    profiles = check_rules(request)
    for path, kind in zip(sys.argv[2:], (ON_CPU, OFF_CPU)):
        with open(path, encoding="utf-8") as file:
            compare(profiles, kind, request.dictionary, json.load(file))
    json.dump([{**attributes(rp), "kinds": [request.dictionary.string_table[p.sample_type.type_strindex]
                                            for sp in rp.scope_profiles for p in sp.profiles],
                "samples": sum(s.values[0] for sp in rp.scope_profiles for p in sp.profiles for s in p.samples
                               if request.dictionary.string_table[p.sample_type.type_strindex] == "samples")}
               for rp in request.resource_profiles], sys.stdout)
    print()


if __name__ == "__main__":
    main()
