#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""share/kubernetes/daemonset.yaml against what the documents say of it, beyond what a schema knows.

    check_daemonset.py DAEMONSET VERSION

Run with the environment of tests/readers/manifests.txt, from the root of the tree. VERSION: kprof's.
"""
import re
import sys

import yaml


def table(text, heading):
    """The first column of the table that begins with this heading."""
    rows = text[text.index(heading):].split("\n\n")[0].splitlines()[2:]
    return [re.findall(r"`([^`]+)`", row.split("|")[1]) for row in rows]


def capabilities(text):
    return set(re.findall(r"CAP_[A-Z_]+", text))


def main():
    path, version = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        text = file.read()
    documents = {d["kind"]: d for d in yaml.safe_load_all(text)}
    with open("docs/kubernetes.md", encoding="utf-8") as file:
        page = file.read()
    with open("docs/security.md", encoding="utf-8") as file:
        recording = next(line for line in file.read().split("## Which rights each phase needs")[1].splitlines()
                         if line.startswith("| recording"))
    pod = documents["DaemonSet"]["spec"]["template"]["spec"]
    container, = pod["containers"]
    security = container["securityContext"]

    # Rights: what the table explains, and no others; with what is left out, those of a recording.
    added = {"CAP_" + name for name in security["capabilities"]["add"]}
    explained = {name for row in table(page, "| capability |") for name in row}
    left_out = {name for row in table(page, "| left out |") for name in row}
    assert added == explained, added ^ explained
    assert not explained & left_out, explained & left_out
    assert explained | left_out == capabilities(recording), (explained | left_out) ^ capabilities(recording)
    assert security["capabilities"]["drop"] == ["ALL"]
    assert security["privileged"] is False and security["allowPrivilegeEscalation"] is False
    assert security["readOnlyRootFilesystem"] is True and security["runAsUser"] == 0
    assert pod["hostPID"] is True and pod["automountServiceAccountToken"] is False
    assert not any(pod.get(name) for name in ("hostNetwork", "hostIPC", "serviceAccountName"))

    # Folders of the node: each has a reason, above it and on the page; all that is mounted is there, and all there is mounted.
    mounts = {m["name"] for m in container["volumeMounts"]}
    volumes = {v["name"]: v for v in pod["volumes"]}
    assert mounts == set(volumes), mounts ^ set(volumes)
    for volume in volumes.values():
        if "hostPath" in volume:
            assert f"`{volume['hostPath']['path']}` of the node" in page, volume
            assert re.search(rf"#[^\n]*\n *- name: {volume['name']}\n", text), f"no reason above {volume['name']}"
        elif "emptyDir" in volume:
            assert volume["emptyDir"]["sizeLimit"]

    # What Prometheus asks is where the daemon listens: at the pod's own address.
    port, = container["ports"]
    number, = (a.split("=", 1)[1].rsplit(":", 1)[1] for a in container["args"] if a.startswith("--listen="))
    annotations = documents["DaemonSet"]["spec"]["template"]["metadata"]["annotations"]
    assert str(port["containerPort"]) == number == annotations["prometheus.io/port"] and port["name"] == "metrics"
    assert f"--listen=127.0.0.1:{number},$(POD_IP):{number}" in container["args"]
    fields = {e["name"]: e["valueFrom"]["fieldRef"]["fieldPath"] for e in container["env"] if "valueFrom" in e}
    assert fields["POD_IP"] == "status.podIP" and fields["NODE_NAME"] == "spec.nodeName"

    # The rest: the version of the image, what is asked whether it is well, the configuration that is mounted.
    assert container["image"] == "kprof:" + version, container["image"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["exec"]["command"] == ["/usr/bin/kprof", "ctl", "status"]
    configuration = next(m for m in container["volumeMounts"] if m["name"] == "configuration")
    assert container["args"][-1].startswith(configuration["mountPath"] + "/")
    assert container["args"][-1].rsplit("/", 1)[1] in documents["ConfigMap"]["data"]
    assert "limits" in container["resources"] and "cpu" not in container["resources"]["limits"]
    print(f"{len(added)} capabilities, {len(left_out)} left out, {len(volumes)} volumes")


main()
