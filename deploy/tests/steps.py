#!/usr/bin/env python3
"""Reads deploy/Dockerfile, one instruction a line, and refuses what deploy/tests/install.sh could not run.

steps.py FILE [NAME=VALUE]...    prints a line for each instruction: stage, instruction and its parts, separated by tabs

NAME=VALUE replaces the default of an ARG. An ARG counts only in FROM lines, because only those before the first FROM are known.
"""

import json
import re
import sys


def fail(number, words):
    sys.exit(f"dockerfile: line {number}: {words}")


def words_of(number, text):
    """The parts of an instruction in the form of a JSON list."""
    try:
        parts = json.loads(text)
    except ValueError:
        fail(number, f"{text} is no JSON list")
    if not isinstance(parts, list) or not parts or not all(isinstance(part, str) for part in parts):
        fail(number, f"{text} is no list of words")
    return parts


def flags_of(number, text, known):
    """Takes the flags before the rest: --name=value."""
    flags = {}
    while found := re.match(r"--([a-z-]+)=(\S+)\s+", text):
        if found[1] not in known:
            fail(number, f"the flag --{found[1]} is not known here")
        flags[found[1]] = found[2]
        text = text[found.end() :]
    return flags, text


def read(path, values):
    stages, stage, arguments = [], None, {}
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.endswith("\\"):
            fail(number, "an instruction takes one line here")
        name, _, text = line.partition(" ")
        text = text.strip()
        if not text:
            fail(number, f"{name} says nothing")
        if name == "ARG":
            if stage is not None or not re.fullmatch(r"[A-Z]+=\S+", text):
                fail(number, "an ARG stands before the first FROM and has a default")
            key, _, value = text.partition("=")
            arguments[key] = values.pop(key, value)
            continue
        if name == "FROM":
            found = re.fullmatch(r"(\S+) AS ([a-z]+)", text) or fail(number, "write FROM IMAGE AS name")
            image = re.sub(r"\$\{([A-Z]+)\}", lambda use: arguments.get(use[1]) or fail(number, f"no ARG {use[1]}"), found[1])
            stage = found[2]
            if stage in stages:
                fail(number, f"there are two stages {stage}")
            stages.append(stage)
            yield stage, "FROM", image
            continue
        if stage is None:
            fail(number, f"{name} before the first FROM")
        if name == "RUN":
            flags, command = flags_of(number, text, {"mount"})
            mount = dict(part.split("=", 1) for part in flags.get("mount", "").split(",") if part)
            if mount and (set(mount) != {"type", "from", "source", "target"} or mount["type"] != "bind"):
                fail(number, "the only mount known here is type=bind,from=STAGE,source=,target=")
            if mount and mount["from"] not in stages[:-1]:
                fail(number, f"there is no earlier stage {mount['from']}")
            yield stage, "RUN", command, mount.get("from", ""), mount.get("source", ""), mount.get("target", "")
        elif name == "COPY":
            parts = text.split()
            if len(parts) != 2 or text.startswith("--"):
                fail(number, "write COPY SOURCE TARGET")
            yield stage, "COPY", *parts
        elif name == "ENV":
            if not re.fullmatch(r"[A-Z_]+=[^\s\"'$]+", text):
                fail(number, "write ENV NAME=value, without quotes")
            yield stage, "ENV", text
        elif name in ("WORKDIR", "VOLUME"):
            if not re.fullmatch(r"/[a-z/]+", text):
                fail(number, f"{name} takes one absolute path")
            yield stage, name, text
        elif name == "USER":
            if not re.fullmatch(r"[1-9]\d*:[1-9]\d*", text):
                fail(number, "USER is two numbers other than 0: Kubernetes must see that it is not root")
            yield stage, "USER", text
        elif name == "EXPOSE":
            if not re.fullmatch(r"\d+( \d+)*", text):
                fail(number, "EXPOSE takes ports")
            yield stage, "EXPOSE", text
        elif name in ("ENTRYPOINT", "CMD"):
            yield stage, name, *words_of(number, text)
        elif name == "HEALTHCHECK":
            flags, rest = flags_of(number, text, {"interval", "timeout", "start-period", "retries"})
            if not rest.startswith("CMD "):
                fail(number, "write HEALTHCHECK CMD [...]")
            yield stage, "HEALTHCHECK", *words_of(number, rest[4:])
        else:
            fail(number, f"{name} is not known here")
    if values:
        sys.exit(f"dockerfile: there is no ARG {', '.join(values)}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    chosen = dict(argument.split("=", 1) for argument in sys.argv[2:])
    for step in list(read(sys.argv[1], chosen)):
        print("\t".join(step))
