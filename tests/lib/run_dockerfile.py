#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Follows a Dockerfile without Docker: each stage is a folder, RUN happens in a chroot.

    run_dockerfile.py DOCKERFILE CONTEXT FOLDER

Run as root, with the environment of tests/readers/manifests.txt. Stages from debian:12 are made by debootstrap, from this machine's
mirror. Prints the last stage as JSON: its root, entrypoint, environment.
"""
import glob
import json
import os
import shlex
import shutil
import subprocess
import sys

from dockerfile_parse import DockerfileParser

# Which of Docker's instructions this one knows; another is an error.
SETTINGS = ("LABEL", "STOPSIGNAL")


def ignored(context, dockerfile):
    with open(dockerfile + ".dockerignore", encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip() and not line.startswith("#")]


class Stage:
    def __init__(self, folder, base):
        self.root, self.directory, self.entrypoint = folder, "/", None
        self.environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        os.makedirs(folder)
        if base == "debian:12":
            mirror = subprocess.run("sed -nE 's/^URIs: *([^ ]+).*/\\1/p; s/^deb +(\\[[^]]*\\] +)?([^ ]+) +bookworm .*/\\2/p' "
                                    "/etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | head -n 1",
                                    shell=True, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
            subprocess.run(["debootstrap", "--variant=minbase", "bookworm", folder, mirror], check=True, stdout=sys.stderr)
            # As the image has it.
            sources = os.path.join(folder, "etc/apt/sources.list.d/debian.sources")
            with open(sources, "w", encoding="utf-8") as file:
                file.write(f"Types: deb\nURIs: {mirror}\nSuites: bookworm\nComponents: main\n"
                           "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n")
            open(os.path.join(folder, "etc/apt/sources.list"), "w").close()
            shutil.copy("/etc/resolv.conf", os.path.join(folder, "etc/resolv.conf"))
        else:
            assert base == "scratch", base

    def path(self, name):
        return os.path.join(self.root, os.path.normpath(os.path.join("/", self.directory, name)).lstrip("/"))

    def run(self, command):
        mounts = [os.path.join(self.root, name) for name in ("proc", "dev")]
        inside = f"mount -t proc proc {mounts[0]} && mount --rbind /dev {mounts[1]} && exec chroot {self.root} /bin/sh -c " + \
            shlex.quote(f"cd {self.directory} && {command}")
        subprocess.run(["unshare", "--mount", "sh", "-c", inside], check=True, stdout=sys.stderr, env=self.environment)

    def copy(self, words, context, stages, ignore):
        source = context
        if words[0].startswith("--from="):
            source, ignore = stages[words.pop(0).removeprefix("--from=")].root, []
        *names, to = words
        to = self.path(to)
        options = [f"--exclude={pattern if pattern.startswith('**') else './' + pattern}" for pattern in ignore]
        for name in names:
            name = os.path.join(source, name.lstrip("/"))
            assert glob.glob(name), f"COPY: there is no {name}"
            os.makedirs(to, exist_ok=True)
            # A folder's contents, as COPY has it.
            pack = subprocess.Popen(["tar", "-C", name, *options, "-cf", "-", "."], stdout=subprocess.PIPE)
            subprocess.run(["tar", "-C", to, "-xpf", "-"], check=True, stdin=pack.stdout)
            assert pack.wait() == 0


def main():
    dockerfile, context, folder = sys.argv[1:]
    parser = DockerfileParser(fileobj=open(dockerfile, "rb"))
    stages, stage = {}, None
    for step in parser.structure:
        name, value = step["instruction"], step["value"]
        if name == "COMMENT":
            continue
        print(f"{name} {value}", file=sys.stderr)
        words = shlex.split(value)
        if name == "FROM":
            stage = Stage(os.path.join(folder, str(len(stages))), words[0])
            stages[words[2] if len(words) == 3 else "last"] = stage
        elif name == "RUN":
            stage.run(value)
        elif name == "COPY":
            stage.copy(words, context, stages, ignored(context, dockerfile))
        elif name == "WORKDIR":
            stage.directory = value
            os.makedirs(stage.path("."), exist_ok=True)
        elif name == "ENV":
            stage.environment.update(word.split("=", 1) for word in words)
        elif name == "ENTRYPOINT":
            stage.entrypoint = json.loads(value)
        else:
            assert name in SETTINGS, name
    print(json.dumps({"root": stage.root, "entrypoint": stage.entrypoint, "environment": stage.environment}))


main()
