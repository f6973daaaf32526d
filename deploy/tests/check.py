#!/usr/bin/env python3
"""Checks the files of deploy/ that others read: Docker, Kubernetes, systemd, and the program itself. deploy/check.sh runs it.

check.py KUSTOMIZE    KUSTOMIZE is the program that renders the manifests.

The settings and commands that exist are read from docs/reference, which a test holds equal to the program. So nothing is built here.
Two checks run the program, PERENNIAL or .build/release/perennial. Without one they are left out, and a line of the output says so.
"""

import configparser
import importlib.util
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import dockerfile
import jsonschema
import kubernetes_validate
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
WORKERS = ("entitlements", "churn", "consumption")
MIB = 1 << 20
# The greatest time to exit after SIGTERM (docs/reference/exit-codes.md).
EXIT_SECONDS = 25

def worker_bytes(cache, threads):
    """What a worker takes: docs/operate/run-workers.md, Memory."""
    return cache * 5 // 4 + 192 * MIB + threads * 64 * MIB


# How much larger a volume is than what `perennial size` says. RocksDB rewrites files, so old and new ones are there for a while, and a
# worker may still have the files of partitions that have moved away.
VOLUME_OF_WORKER, VOLUME_OF_API = 3, 1.5
# The runbooks and the example for Prometheus in docs/operate/deploy.md use these.
PORTS = {
    "ingest": 9464, "entitlements@1": 9465, "entitlements@2": 9466, "churn@1": 9467, "churn@2": 9468,
    "consumption@1": 9469, "consumption@2": 9470, "api": 9471,
}  # fmt: skip
# preStop with sleep came with 1.30. The other one is the newest whose schema is known here.
KUBERNETES = ("1.30.0", "1.37.0")

PROGRAM = pathlib.Path(os.environ.get("PERENNIAL") or ROOT / ".build/release/perennial").resolve()

faults = []
checked = {}


def fault(place, words):
    faults.append(f"{str(place).removeprefix(str(ROOT) + '/')}: {words}")


def expect(place, holds, words):
    """One check. They are counted, so that a part that checks nothing is noticed."""
    checked[part] = checked.get(part, 0) + 1
    if not holds:
        fault(place, words)


# ---- What the program knows ---------------------------------------------------------------------------------------------------------


def read_settings():
    """Key: its column Values."""
    rows = re.findall(r"^\| `([a-z.*]+)` \| .*? \| (.*?) \| .* \| .* \|$", (ROOT / "docs/reference/settings.md").read_text(), re.M)
    settings = dict(rows)
    if len(settings) < 40:
        sys.exit("check: docs/reference/settings.md has no table of settings")
    return settings


def read_commands():
    """Command: its options (name: has a value), its operands (None: any), and whether it takes settings."""
    commands = {}
    text = (ROOT / "docs/reference/commands.md").read_text()
    for name, section in re.findall(r"^## `perennial ([a-z-]+)`\n(.*?)(?=^## |\Z)", text, re.M | re.S):
        usage = re.search(rf"^perennial {name} ?(.*)$", section, re.M)[1].replace("[--option value]...", "")
        words = re.findall(r"[A-Za-z-]+", usage)
        options = {option: bool(value) for option, value in re.findall(r"^\| `--([a-z-]+)( [^`]+)?` \|", section, re.M)}
        commands[name] = (options, None if any(word.isupper() for word in words) else set(words), "ettings](settings.md)" in section)
    if len(commands) < 15:
        sys.exit("check: docs/reference/commands.md has no commands")
    return commands


def check_value(place, key, value):
    """Numbers and switches. Everything else is judged by the program when it starts."""
    values = SETTINGS.get(key, "")
    if value == "" or value.startswith("file:"):
        return
    if found := re.match(r"whole number from (\d+) to (\d+)", values):
        holds = value.isdigit() and int(found[1]) <= int(value) <= int(found[2])
        expect(place, holds, f"{key} = {value}: {values}")
    elif values == "true or false":
        expect(place, value in ("true", "false"), f"{key} = {value}: {values}")


def check_setting(place, key, value):
    known = key in SETTINGS or key.startswith("kafka.")
    expect(place, known, f"there is no setting {key}")
    if known:
        check_value(place, key, value)


def check_variable(place, name, value):
    """PERENNIAL_TOPIC_PREFIX is topic.prefix."""
    if name == "PERENNIAL_CONFIG" or name.startswith("PERENNIAL_KAFKA_"):
        return
    keys = [key for key in SETTINGS if "PERENNIAL_" + key.upper().replace(".", "_") == name]
    expect(place, keys, f"the variable {name} is no setting")
    if keys:
        check_value(place, keys[0], value)


def check_command(place, words, whole=True):
    """The words after `perennial`. Not whole: in a sentence, where the value of an option may be left out."""
    name, *rest = words
    expect(place, name in COMMANDS, f"there is no command perennial {name}")
    if name not in COMMANDS:
        return
    options, operands, takes_settings = COMMANDS[name]
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            expect(place, operands is None or word in operands, f"perennial {name} does not take {word}")
            continue
        option, has_value, _ = word[2:].partition("=")
        if option in options:
            takes = options[option]
        else:
            takes = takes_settings and (option in SETTINGS or option.startswith("kafka."))
            expect(place, takes, f"perennial {name} has no option --{option}")
        if takes and not has_value:
            expect(place, rest or not whole, f"perennial {name}: --{option} needs a value")
            value = rest.pop(0) if rest else ""
            if option in SETTINGS:
                check_value(place, option, value)


def check_file_of_settings(path, prefix=""):
    """`key = value`, also in comments without a blank: these are examples that somebody will switch on."""
    found = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        example = re.fullmatch(r"(#?)([a-z][a-zA-Z.]*) = (.*)", line)
        expect(f"{path}:{number}", example or line == "" or line.startswith("#"), f"this is no setting: {line}")
        if example:
            check_setting(f"{path}:{number}", example[2], example[3])
            if not example[1]:
                found[example[2]] = example[3]
    return found


def check_text(path):
    """Commands in code blocks of a page, and in comments and text between backticks."""
    text = path.read_text()
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", text, re.M | re.S) if path.suffix == ".md" else []
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    lines += re.findall(r"^#     ((?:perennial|runuser|docker) .*)$", text, re.M)
    sentences = re.findall(r"`(perennial [^`]*)`", text)
    for line in lines + sentences:
        # `perennial` as a word of its own. What follows a pipe, a redirection or a comment is not its argument.
        for found in re.finditer(r"(?:^|[\s/])perennial(?= +[a-z])", line):
            # The name of a namespace, a user or a group.
            if not re.search(r" -[nug]$", line[: found.start()]):
                check_command(path, shlex.split(re.split(r"[|>#;&]", line[found.end() :])[0]), whole=line in lines)


def settings():
    for path in (DEPLOY / "debian/perennial.conf", *sorted((DEPLOY / "topics").glob("*.conf"))):
        check_file_of_settings(path)
    for path in sorted((DEPLOY / "debian/instances").glob("*.env")):
        for name, value in re.findall(r"^(\w+)=(.*)$", path.read_text(), re.M):
            check_variable(path, name, value)
    texts = subprocess.run(["git", "ls-files", "deploy"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    for name in texts:
        if name and not name.endswith((".json", ".py")) and (ROOT / name).is_file():
            check_text(ROOT / name)
    for path in sorted((ROOT / "docs/operate").glob("**/*.md")):
        check_text(path)


# ---- Docker -------------------------------------------------------------------------------------------------------------------------


def docker():
    path = DEPLOY / "Dockerfile"
    # Docker's own parser, and then the reader of the test, which knows fewer instructions.
    try:
        dockerfile.parse_file(str(path))
    except dockerfile.GoParseError as error:
        return fault(path, error)
    steps = subprocess.run([sys.executable, DEPLOY / "tests/steps.py", path], capture_output=True, text=True)
    expect(path, steps.returncode == 0, steps.stderr.strip())
    if steps.returncode != 0:
        return
    stage = {}
    for _, name, *parts in (line.split("\t") for line in steps.stdout.splitlines()):
        stage[name] = parts
        if name == "ENV":
            check_variable(path, *parts[0].split("=", 1))
    expect(path, stage.get("ENTRYPOINT") == ["/usr/bin/perennial"], "ENTRYPOINT is not the program")
    expect(path, stage.get("USER") == ["10001:10001"], "USER is not the one of deploy/install.sh, compose and Kubernetes")
    expect(path, stage.get("HEALTHCHECK", [""])[0] == "/usr/lib/perennial/probe", "HEALTHCHECK is not the probe of the package")
    check_command(path, stage.get("CMD", [""]))
    expect(DEPLOY / "install.sh", "number=10001" in (DEPLOY / "install.sh").read_text(), "the user has not the number of the Dockerfile")


# ---- Compose ------------------------------------------------------------------------------------------------------------------------


def interpolated(value):
    """With the defaults: ${NAME:-default} and ${NAME:+other}."""
    return re.sub(r"\$\{\w+(:[-+])?([^}]*)\}", lambda use: use[2] if use[1] == ":-" else "", value)


def size(text):
    number, unit = re.fullmatch(r"(\d+)([kmgKMG]?)i?", str(text)).groups()
    return int(number) << {"": 0, "k": 10, "m": 20, "g": 30}[unit.lower()]


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)([sm])", text).groups()
    return int(number) * {"s": 1, "m": 60}[unit]


def compose():
    path = DEPLOY / "compose.yaml"
    content = yaml.safe_load(path.read_text())
    # Only the schema of that package is used, so the libraries of its command line are not installed.
    schema = pathlib.Path(importlib.util.find_spec("check_jsonschema").origin).parent / "builtin_schemas/vendor/compose-spec.json"
    for error in jsonschema.Draft7Validator(json.loads(schema.read_text())).iter_errors(content):
        fault(path, f"{'/'.join(map(str, error.path))}: {error.message}")
    services, names = content["services"], set()
    places = {"secrets": set(), "networks": set(), "volumes": set()}
    slots, states = {}, {}
    # Each process with all of its names, and the memory of the services of a profile.
    processes, memory = {}, {"apple": 0, "simulate": 0}
    for name, service in services.items():
        place = f"{path}: {name}"
        profiles = set(service.get("profiles", []))
        environment = {key: interpolated(str(value)) for key, value in service.get("environment", {}).items()}
        # What belongs to every service.
        expect(place, service.get("cap_drop") == ["ALL"], "cap_drop is not [ALL]")
        expect(place, "no-new-privileges:true" in service.get("security_opt", []), "security_opt lacks no-new-privileges:true")
        expect(place, "mem_limit" in service, "it has no mem_limit")
        expect(place, service.get("read_only") or name == "kafka", "read_only is not true")
        tag = interpolated(service["image"]).rpartition(":")[2]
        expect(place, re.search(r"\d+\.\d+\.\d+", tag), "the image has no version")
        for port in service.get("ports", []):
            expect(place, interpolated(port).startswith("127.0.0.1:"), f"the port {port} is open to other hosts")
        for needed, how in service.get("depends_on", {}).items():
            of = services.get(needed)
            expect(place, of is not None, f"it depends on {needed}, which does not exist")
            needs = set(of.get("profiles", [])) if of else set()
            expect(place, not needs or (profiles and profiles <= needs), f"it depends on {needed}, which another profile starts")
            healthy = how["condition"] != "service_healthy" or (of and "test" in of.get("healthcheck", {}))
            expect(place, healthy, f"it waits for {needed} to be healthy, which has no health check")
        # What it uses exists.
        used = service.get("networks", [])
        places["networks"].update(used)
        for network in used if isinstance(used, dict) else {}:
            names.update((used[network] or {}).get("aliases", []))
        names.add(name)
        if service.get("command", [""])[0] in (*WORKERS, "ingest", "api"):
            processes[name] = {name}.union(*((used[network] or {}).get("aliases", []) for network in used if isinstance(used, dict)))
        for profile in memory:
            if not profiles or profile in profiles:
                memory[profile] += size(service.get("mem_limit", 0))
        places["secrets"].update(service.get("secrets", []))
        for volume in service.get("volumes", []):
            source, target = volume.split(":")[:2]
            if source.startswith("."):
                there = (DEPLOY / source).exists()
                if not there and not (DEPLOY / source.split("/")[1]).exists():
                    notes.append(f"compose: {source} is not checked, because deploy/{source.split('/')[1]} does not exist")
                else:
                    expect(place, there, f"{source} does not exist")
                continue
            places["volumes"].add(source)
            if target == "/var/lib/perennial":
                states.setdefault(source, []).append((name, profiles))
        if "/probe" not in str(service.get("healthcheck")) and "perennial:" not in interpolated(service["image"]):
            continue
        # A process of Perennial.
        check_command(place, service["command"])
        for key, value in environment.items():
            if key.startswith("PERENNIAL_"):
                check_variable(place, key, value)
            for used in re.findall(r"/run/secrets/([a-z-]+)", value):
                expect(place, used in service.get("secrets", []), f"{key} names a secret that it does not have")
            if key in ("PERENNIAL_API_TOKEN", "PERENNIAL_USAGE_TOKEN") and value and not value.startswith("file:"):
                expect(place, profiles == {"simulate"}, f"{key} is known to everybody, and this is not only for trying")
                expect(place, len(value) >= 16, f"{key} has fewer than 16 characters")
        # Perennial reads `file:` only if root or its own user owns the file: docs/reference/settings.md, Rights of files.
        for used in re.findall(r"file:/run/secrets/([a-z-]+)", str(service.get("environment"))):
            source = interpolated(content["secrets"][used]["file"])
            mine = source == "/dev/null" or not (DEPLOY / source).exists()
            expect(place, mine, f"the secret {used} is {source}, which belongs to whoever has made the clone")
        expect(place, seconds(service["stop_grace_period"]) > EXIT_SECONDS, f"stop_grace_period is not above {EXIT_SECONDS}s")
        trusts = "PERENNIAL_VERIFY_ROOTS" in environment
        expect(place, not trusts or profiles == {"simulate"}, "it trusts another root than Apple's outside of the profile simulate")
        role = service["command"][0]
        if role in WORKERS:
            cache = int(environment["PERENNIAL_STATE_CACHE_BYTES"])
            expect(place, size(service["mem_limit"]) == worker_bytes(cache, 1), "mem_limit is not that of run-workers.md")
            slots.setdefault((role, environment["PERENNIAL_WORKER_SLOT"]), []).append((name, profiles))
    for what, users in (*slots.items(), *states.items()):
        for first, of_first in users:
            for second, of_second in users:
                apart = first == second or (of_first and of_second and not of_first & of_second)
                expect(path, apart, f"{first} and {second} share {what}")
    for worker in WORKERS:
        expect(path, len({slot for role, slot in slots if role == worker}) == 2, f"there are not two slots of {worker}")
    for kind, used in places.items():
        expect(path, used == set(content[kind]), f"{kind}: used and declared differ by {sorted(used ^ set(content[kind]))}")
    for name, secret in content["secrets"].items():
        file = interpolated(secret["file"])
        expect(path, file.startswith(("./set-", "/dev/null")) or (DEPLOY / file).is_file(), f"the secret {name}: {file} does not exist")
    scrapes = DEPLOY / "prometheus/prometheus.yml"
    if scrapes.exists():
        scraped = set()
        for job in yaml.safe_load(scrapes.read_text())["scrape_configs"]:
            for target in (target for config in job["static_configs"] for target in config["targets"]):
                host, _, port = target.rpartition(":")
                scraped.add(host)
                expect(scrapes, host in names, f"{job['job_name']}: the compose file has no service {host}")
                expect(scrapes, port == "9464", f"{job['job_name']}: the containers listen at 9464")
        for name, own in processes.items():
            expect(scrapes, own & scraped, f"Prometheus does not ask {name}")
    page = ROOT / "docs/operate/deploy.md"
    said = "may take {:.2f} GiB of memory together, {:.2f} GiB with".format(*(memory[profile] / 2**30 for profile in ("apple", "simulate")))
    expect(page, said in page.read_text(), f"the containers {said} the simulated App Store")
    apps = DEPLOY / "compose/simulated-apps.json"
    if PROGRAM.exists():
        with tempfile.TemporaryDirectory() as folder:
            written = pathlib.Path(folder) / "apps.json"
            subprocess.run([PROGRAM, "simulate", "--apps", written, "--out", f"{folder}/out", "--subscribers", "1"], capture_output=True, check=True)
            expect(apps, written.read_text() == apps.read_text(), "these are not the apps of perennial simulate --apps")
    else:
        notes.append("compose: compose/simulated-apps.json is not compared with perennial simulate, because make release has not run")


# ---- Kubernetes ---------------------------------------------------------------------------------------------------------------------


def rendered(folder):
    run = subprocess.run([KUSTOMIZE, "build", folder], capture_output=True, text=True)
    expect(folder, run.returncode == 0 and not run.stderr, run.stderr.strip())
    return list(yaml.safe_load_all(run.stdout))


def matches(selector, labels):
    return selector.get("matchLabels", selector).items() <= labels.items()


def check_pod(place, thing, settings, claims, objects):
    spec, kind = thing["spec"]["template"]["spec"], thing["kind"]
    role = thing["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]
    (container,) = spec["containers"]
    # The profile `restricted` of Pod Security, and what goes beyond it.
    pod, own = spec["securityContext"], container["securityContext"]
    expect(place, pod.get("runAsNonRoot") and pod.get("runAsUser") == pod.get("fsGroup") == 10001, "it does not run as user 10001")
    expect(place, pod.get("seccompProfile") == {"type": "RuntimeDefault"}, "seccompProfile is not RuntimeDefault")
    locked = own == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    expect(place, locked, "the container has rights that it does not need")
    expect(place, spec.get("automountServiceAccountToken") is False, "it gets a token for Kubernetes")
    # The program: its command, variables and files.
    if role != "tools":
        check_command(place, container["args"])
    variables = {entry["name"]: entry["value"] for entry in container.get("env", []) if entry["name"] != "TMPDIR"}
    for name, value in variables.items():
        check_variable(place, name, value)
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    expect(place, set(mounts) == set(volumes) | claims, f"volumes and mounts differ by {sorted(set(mounts) ^ (set(volumes) | claims))}")
    files = [value.removeprefix("file:") for value in variables.values()] + [word for word in container.get("args", [])]
    files += [value for key, value in settings.items() if key.startswith("kafka.")]
    files += [value for key, value in settings.items() if key == "apps" and role in (*WORKERS, "ingest", "api", "tools")]
    for file in files:
        if file.startswith("/"):
            expect(place, any(file.startswith(f"{mount}/") for mount in mounts.values()), f"nothing is mounted where {file} is")
    for volume in volumes.values():
        if "configMap" in volume:
            expect(place, ("ConfigMap", volume["configMap"]["name"]) in objects, f"there is no config map {volume['configMap']['name']}")
        elif "ephemeral" not in volume:
            secret = volume["secret"]["secretName"]
            page = (ROOT / "docs/operate/deploy.md").read_text()
            expect(place, f" {secret} " in page, f"docs/operate/deploy.md does not say how to make the secret {secret}")
            expect(place, volume["secret"].get("defaultMode") == 0o440, f"others can read the secret {secret}")
    # Numbers that depend on each other.
    resources = container["resources"]
    for kind_of in ("requests", "limits"):
        expect(place, set(resources.get(kind_of, {})) == {"cpu", "memory"}, f"resources.{kind_of} lacks cpu or memory")
    cache, threads = int(settings["state.cache.bytes"]), int(settings.get("worker.threads", 1))
    memory = size(resources["limits"]["memory"])
    if role in WORKERS:
        expect(place, memory == worker_bytes(cache, threads), "the memory limit is not that of run-workers.md")
        expect(place, resources["limits"]["cpu"] == str(threads + 1), "the cpu limit is not worker.threads + 1")
        expect(place, kind == "StatefulSet", "a worker outside of a StatefulSet has no slot")
    if role == "api":
        expect(place, memory >= 2 * cache, "the memory limit is below twice state.cache.bytes")
    if role == "tools":
        expect(place, memory >= worker_bytes(cache, threads), "a replay needs as much memory as a worker")
    if kind == "Job" or role == "tools":
        return role
    before = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    grace = spec.get("terminationGracePeriodSeconds", 30)
    expect(place, grace > EXIT_SECONDS + before, f"terminationGracePeriodSeconds is not above {EXIT_SECONDS} + preStop")
    ports = {port["name"] for port in container["ports"]}
    for probe, asked in (("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")):
        get = container.get(probe, {}).get("httpGet", {})
        expect(place, get.get("path") == asked and get.get("port") in ports, f"{probe} does not ask for {asked}")
    if kind == "StatefulSet":
        expect(place, thing["spec"]["podManagementPolicy"] == "Parallel", "podManagementPolicy is not Parallel")
        expect(place, thing["spec"]["updateStrategy"] == {"type": "RollingUpdate"}, "updateStrategy is not RollingUpdate")
    return role


def check_volumes(folder, things):
    """They have room for what `perennial size` says, with the command that the overlay names."""
    file = folder / "kustomization.yaml"
    commands = re.findall(r"^#     perennial (size .*)$", file.read_text(), re.M)
    expect(file, len(commands) == 1, "no comment, or more than one, says with which perennial size the volumes were computed")
    if len(commands) != 1:
        return
    if not PROGRAM.exists():
        return notes.append(f"kubernetes: the volumes of {folder.name} are not compared with perennial size, because make release has not run")
    run = subprocess.run([PROGRAM, *shlex.split(commands[0]), "--format", "json"], cwd=ROOT, capture_output=True, text=True)
    expect(file, run.returncode == 0, f"perennial {commands[0]}: {run.stderr.strip()}")
    if run.returncode != 0:
        return
    sizes = json.loads(run.stdout)
    of_api = next(process["diskBytesOfEach"] for process in sizes["processes"] if process["role"] == "api")
    for thing in (thing for thing in things if thing["kind"] == "StatefulSet"):
        role, replicas = thing["metadata"]["labels"]["app.kubernetes.io/component"], thing["spec"]["replicas"]
        volume = size(thing["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"])
        if role == "api":
            least = of_api * VOLUME_OF_API
        else:
            # When one replica is lost, the others have its part.
            least = sizes["stateBytes"][role] * sizes["figures"]["diskPerStateByte"]["value"] / (replicas - 1) * VOLUME_OF_WORKER
        words = f"the volume of {role} has {volume / 1e9:.1f} GB, and perennial size asks for {least / 1e9:.1f} GB"
        expect(file, volume >= least, words)
        # Somebody pays for it.
        expect(file, volume <= 2 * least or volume <= 1 << 30, f"{words}: that is less than half of it")


def check_overlay(folder):
    things = rendered(folder)
    objects = {(thing["kind"], thing["metadata"]["name"]) for thing in things}
    settings = check_file_of_settings(folder / "perennial.conf")
    plan = check_file_of_settings(DEPLOY / f"topics/{folder.name}.conf")
    expect(folder, plan.items() <= settings.items(), f"perennial.conf does not have the numbers of deploy/topics/{folder.name}.conf")
    pods, ports = [], set()
    for thing in things:
        place = f"{folder}: {thing['kind']} {thing['metadata']['name']}"
        for version in KUBERNETES:
            if thing["kind"] == "ServiceMonitor":
                continue  # not a kind of Kubernetes
            try:
                kubernetes_validate.validate(thing, version, strict=True)
                expect(place, True, "")
            except (kubernetes_validate.ValidationError, kubernetes_validate.InvalidSchemaError) as error:
                fault(place, f"Kubernetes {version}: {getattr(error, 'message', error)}")
        expect(place, thing["kind"] == "Namespace" or thing["metadata"].get("namespace") == "perennial", "it is in no namespace")
        if thing["kind"] in ("Deployment", "StatefulSet", "Job"):
            claims = {claim["metadata"]["name"] for claim in thing["spec"].get("volumeClaimTemplates", [])}
            check_pod(place, thing, settings, claims, objects)
            template = thing["spec"]["template"]
            labels = template["metadata"]["labels"]
            expect(place, matches(thing["spec"].get("selector", {}), labels), "its selector does not match its pods")
            expect(place, "image" in template["spec"]["containers"][0] and ":" in template["spec"]["containers"][0]["image"], "no version")
            pods.append((thing["metadata"]["name"], labels))
            for port in template["spec"]["containers"][0].get("ports", []):
                ports.add((labels["app.kubernetes.io/component"], port["name"]))
    # What points at pods.
    for thing in things:
        place, spec = f"{folder}: {thing['kind']} {thing['metadata']['name']}", thing.get("spec", {})
        chosen = {"Service": spec.get("selector"), "PodDisruptionBudget": spec.get("selector"), "NetworkPolicy": spec.get("podSelector")}
        selector = chosen.get(thing["kind"])
        if selector:
            found = [labels["app.kubernetes.io/component"] for _, labels in pods if matches(selector, labels)]
            expect(place, found, "it selects no pods")
            named = [port.get("targetPort") for port in spec.get("ports", [])]
            named += [port["port"] for rule in spec.get("ingress", []) for port in rule.get("ports", [])]
            for port in (port for port in named if isinstance(port, str)):
                expect(place, any((role, port) in ports for role in found), f"no pod has a port {port}")
        if thing["kind"] == "HorizontalPodAutoscaler":
            target = (spec["scaleTargetRef"]["kind"], spec["scaleTargetRef"]["name"])
            expect(place, target in objects, "it scales nothing")
            scaled = next((thing for thing in things if (thing["kind"], thing["metadata"]["name"]) == target), {"spec": {}})
            expect(place, "replicas" not in scaled["spec"], "the replicas that it decides are also in the Deployment")
        if thing["kind"] == "StatefulSet":
            expect(place, ("Service", spec["serviceName"]) in objects, f"there is no service {spec['serviceName']}")
            expect(place, ("PodDisruptionBudget", thing["metadata"]["name"]) in objects, "it has no PodDisruptionBudget")
    check_volumes(folder, things)
    policies = {thing["metadata"]["name"]: thing["spec"] for thing in things if thing["kind"] == "NetworkPolicy"}
    denies = policies.get("deny", {}) == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    expect(folder, denies, "the policy deny does not deny everything")
    broker = int(settings["kafka.bootstrap.servers"].rpartition(":")[2])
    allowed = [port["port"] for rule in policies.get("kafka", {}).get("egress", []) for port in rule["ports"]]
    expect(folder, broker in allowed, f"the policy kafka does not allow port {broker} of kafka.bootstrap.servers")
    return things


def check_kubectl(path, things):
    """What a page does with kubectl is there in the manifests: objects, pods, components, and the program with its settings."""
    objects, components = set(), set()
    for thing in things:
        kind, name, spec = thing["kind"].lower(), thing["metadata"]["name"], thing.get("spec", {})
        objects.add((kind, name))
        components.add(thing["metadata"].get("labels", {}).get("app.kubernetes.io/component"))
        if kind == "statefulset":
            objects |= {("pod", f"{name}-{number}") for number in range(spec["replicas"])}
        # Operators make the secrets.
        volumes = spec.get("template", {}).get("spec", {}).get("volumes", [])
        objects |= {("secret", volume["secret"]["secretName"]) for volume in volumes if "secret" in volume}
    text = path.read_text().replace("\\\n", " ")
    for command in re.findall(r"\bkubectl ([^`\n|;]*)", text):
        place = f"{path}: kubectl {command}"
        command, _, inside = command.partition(" -- ")
        # A kind before a slash or a blank; a name alone is that of a pod.
        named = re.findall(r"(?:\b(\w+)[ /])?(?<![\w-])(perennial-[a-z0-9-]*[a-z0-9])(?![\w$-])", command)
        for kind, name in named:
            kind = {"generic": "secret", "tls": "secret", "exec": "pod", "logs": "pod"}.get(kind, kind or "pod")
            expect(place, (kind, name) in objects, f"the manifests have no {kind} {name}")
        known = "-n perennial " in command or "--namespace=perennial" in text
        expect(place, not named or known, "it does not name the namespace")
        for names in re.findall(r"app\.kubernetes\.io/component (?:not)?in \(([^)]*)\)", command):
            wrong = set(names.split(", ")) - components
            expect(place, not wrong, f"the manifests have no component {', '.join(sorted(wrong))}")
        if inside.startswith("perennial "):
            words = shlex.split(inside)[1:]
            check_command(place, words)
            needs = words[0] in COMMANDS and COMMANDS[words[0]][2] and "--config" not in words
            expect(place, not needs, "the pod has no PERENNIAL_CONFIG: add --config")


def check_tools(things):
    """The component has a pod in which a replay can run, with what the overlay brings."""
    # A copy of the overlay, as an operator makes one: only there the pod gets the name of the settings.
    small, folder, up = DEPLOY / "kubernetes/overlays/small", ROOT / ".build/deploy/tools", "../../../deploy/kubernetes"
    shutil.copytree(small, folder, dirs_exist_ok=True)
    text = (small / "kustomization.yaml").read_text().replace("resources: [../../base]", f"resources: [{up}/base]")
    (folder / "kustomization.yaml").write_text(re.sub("^# components:.*", f"components: [{up}/tools]", text, flags=re.M))
    all_things = rendered(folder)
    objects = {(thing["kind"], thing["metadata"]["name"]) for thing in all_things}
    settings = check_file_of_settings(small / "perennial.conf")
    tools = [thing for thing in all_things if thing not in things]
    expect(folder, [thing["metadata"]["name"] for thing in tools] == ["perennial-tools"], "the component tools adds another thing than its pod")
    for thing in tools:
        for version in KUBERNETES:
            kubernetes_validate.validate(thing, version, strict=True)
        check_pod(f"{folder}: {thing['metadata']['name']}", thing, settings, set(), objects)
        variables = {entry["name"]: entry["value"] for entry in thing["spec"]["template"]["spec"]["containers"][0]["env"]}
        expect(folder, variables.pop("TMPDIR", None) == "/var/lib/perennial", "perennial diff has no place for its files")
        (consumption,) = (one for one in things if one["kind"] == "StatefulSet" and one["metadata"]["name"] == "perennial-consumption")
        same = {entry["name"]: entry["value"] for entry in consumption["spec"]["template"]["spec"]["containers"][0]["env"]}
        expect(folder, variables == same, "a replay of consumption has other variables than the worker")
        labels = thing["spec"]["template"]["metadata"]["labels"]
        for policy in (thing for thing in things if thing["kind"] == "NetworkPolicy" and thing["metadata"]["name"] == "kafka"):
            expect(folder, matches(policy["spec"]["podSelector"], labels), "the policy kafka does not let perennial-tools reach Kafka")
    return tools


def kubernetes():
    for name in ("small", "large"):
        things = check_overlay(DEPLOY / "kubernetes/overlays" / name)
        if name == "small":
            things += check_tools(things)
            for path in (DEPLOY / "kubernetes/base/topics.yaml", *sorted((ROOT / "docs").glob("**/*.md"))):
                check_kubectl(path, things)
    # The component needs a kind that no schema here has: that it renders, and finds the services.
    folder = ROOT / ".build/deploy/monitored"
    folder.mkdir(parents=True, exist_ok=True)
    up = "../../../deploy/kubernetes"
    (folder / "kustomization.yaml").write_text(f"resources: [{up}/overlays/small]\ncomponents: [{up}/monitoring]\n")
    things = rendered(folder)
    monitors = [thing for thing in things if thing["kind"] == "ServiceMonitor"]
    expect(folder, len(monitors) == 1, "the component monitoring adds no ServiceMonitor")
    for monitor in monitors:
        port = monitor["spec"]["endpoints"][0]["port"]
        found = {
            thing["spec"]["selector"]["app.kubernetes.io/component"]
            for thing in things
            if thing["kind"] == "Service"
            and matches(monitor["spec"]["selector"], thing["metadata"]["labels"])
            and port in [port["name"] for port in thing["spec"]["ports"]]
        }
        expect(folder, found == {*WORKERS, "ingest", "api"}, f"the ServiceMonitor finds only {sorted(found)}")
        targets = {rule["targetLabel"]: rule["sourceLabels"] for rule in monitor["spec"]["endpoints"][0]["relabelings"]}
        expect(folder, targets.get("instance") == ["__meta_kubernetes_pod_name"], "a pod that is made again would be another instance")
    check_monitoring_rules(folder, things)


def check_monitoring_rules(folder, things):
    """The component has the rules of deploy/prometheus, and promtool reads them as the operator hands them on."""
    place = DEPLOY / "kubernetes/monitoring/rules.yaml"
    wanted = {f"perennial-{name}": yaml.safe_load((DEPLOY / f"prometheus/{name}.yml").read_text()) for name in ("recording", "alerts")}
    found = {thing["metadata"]["name"]: thing["spec"] for thing in things if thing["kind"] == "PrometheusRule"}
    expect(place, found == wanted, "these are not the rules of deploy/prometheus: run deploy/kubernetes/monitoring/generate.py")
    for name, spec in found.items():
        written = folder / f"{name}.yml"
        written.write_text(yaml.safe_dump(spec))
        run = subprocess.run(["promtool", "check", "rules", written], capture_output=True, text=True)
        expect(place, run.returncode == 0, f"promtool check rules: {run.stdout.strip()} {run.stderr.strip()}")


# ---- systemd ------------------------------------------------------------------------------------------------------------------------


def systemd():
    folder = DEPLOY / "systemd"
    common = configparser.ConfigParser(strict=False, interpolation=None)
    common.optionxform = str
    common.read(folder / "perennial-.service.d/10-common.conf")
    service = common["Service"]
    expect(folder, int(service["TimeoutStopSec"]) > EXIT_SECONDS, f"TimeoutStopSec is not above {EXIT_SECONDS}")
    expect(folder, service["RestartPreventExitStatus"] == "2", "a wrong configuration (exit code 2) is tried again")
    expect(folder, service["KillSignal"] == "SIGTERM", "it is not stopped by SIGTERM")
    ports = {}
    for path in sorted((DEPLOY / "debian/instances").glob("*.env")):
        ports[path.stem] = sum(map(int, re.findall(r"^PERENNIAL_ADMIN_LISTEN=127\.0\.0\.1:(\d+)$", path.read_text(), re.M)))
    expect(DEPLOY / "debian/instances", ports == PORTS, f"ports: {ports}, not {PORTS}")
    with tempfile.TemporaryDirectory() as name:
        # A system with these units, those of this machine that they name, and something where the program will be.
        root = pathlib.Path(name)
        units = root / "usr/lib/systemd/system"
        shutil.copytree(folder, units)
        for target in pathlib.Path("/usr/lib/systemd/system").glob("*.target"):
            shutil.copy(target, units, follow_symlinks=True)
        for program in ("usr/bin/perennial", "bin/sh"):
            (root / program).parent.mkdir(parents=True, exist_ok=True)
            (root / program).write_text("#!/bin/sh\n")
            (root / program).chmod(0o755)
        seen = set()
        for instance in PORTS:
            unit = f"perennial-{instance}.service"
            source = units / re.sub(r"@.*\.", "@.", unit)
            seen.add(source.name)
            text = source.read_text()
            run = re.findall(r"^ExecStart=/usr/bin/perennial (.*)$", text, re.M)
            expect(source.name, len(run) == 1, "it does not start the program")
            for line in run:
                check_command(source.name, line.split())
            for variable, value in re.findall(r"^Environment=(\w+)=(.*)$", text, re.M):
                check_variable(source.name, variable, value.replace("%i", "1"))
            read = re.findall(r"^EnvironmentFile=/etc/perennial/(.*)$", text, re.M)
            expect(source.name, [file.replace("%i", instance.partition("@")[2]) for file in read] == [f"{instance}.env"], f"reads {read}")
            analyze = ["systemd-analyze", f"--root={root}", "--man=no"]
            verdict = subprocess.run([*analyze, "verify", unit], capture_output=True, text=True)
            expect(unit, verdict.returncode == 0 and not verdict.stderr, f"systemd-analyze verify: {verdict.stderr.strip()}")
            # In tenths: at most 2.0.
            verdict = subprocess.run([*analyze[:2], "security", "--offline=true", "--threshold=20", unit], capture_output=True, text=True)
            expect(unit, verdict.returncode == 0, f"systemd-analyze security: {(verdict.stdout.strip() or verdict.stderr).splitlines()[-1]}")
        target = subprocess.run([*analyze, "verify", "perennial.target"], capture_output=True, text=True)
        expect("perennial.target", target.returncode == 0 and not target.stderr, target.stderr.strip())
        expect(folder, seen == {path.name for path in folder.glob("*.service")}, "a unit has no instance with a port")


# ---- Runbooks -----------------------------------------------------------------------------------------------------------------------


def expanded(text):
    """As bash expands braces: a{1,2} is a1 a2."""
    found = re.search(r"(\S*)\{([^{}\s]*,[^{}\s]*)\}(\S*)", text)
    if not found:
        return text
    words = " ".join(found[1] + part + found[3] for part in found[2].split(","))
    return expanded(text[: found.start()] + words + text[found.end() :])


def runbooks():
    """What a page about an operation does to one process of a worker, it does to each of them."""
    for path in sorted((ROOT / "docs/operate/runbooks").glob("[a-z]*.md")):
        if path.name.startswith("perennial-"):
            continue
        for block in re.findall(r"^ *```sh\n(.*?)^ *```", path.read_text(), re.M | re.S):
            text = expanded(block)
            named = {instance for instance, port in PORTS.items() if re.search(rf"\b({instance}|{port})\b", text)}
            for worker in WORKERS:
                every = {instance for instance in PORTS if instance.startswith(f"{worker}@")}
                missing = " and ".join(sorted(every - named))
                expect(path, not missing or not named & every, f"a command leaves out {missing}: {block.strip().splitlines()[0]}")


# ---- Rules of Prometheus ------------------------------------------------------------------------------------------------------------


def prometheus():
    folder = DEPLOY / "prometheus"
    if not folder.exists():
        return notes.append("prometheus: not checked, because deploy/prometheus does not exist")
    for arguments in (
        ["check", "config", folder / "prometheus.yml"],
        ["check", "rules", *sorted(path for path in folder.glob("*.yml") if path.name != "prometheus.yml")],
        ["test", "rules", *sorted(folder.glob("tests/*.yml"))],
    ):
        run = subprocess.run(["promtool", *arguments], capture_output=True, text=True)
        expect(folder, run.returncode == 0, f"promtool {' '.join(map(str, arguments[:2]))}: {run.stdout.strip()} {run.stderr.strip()}")
    check_labels(folder)


def check_labels(folder):
    """Rules, and series of their tests, have only labels that docs/reference/metrics.md gives a metric. promtool believes any label."""
    sys.path.insert(0, str(DEPLOY / "grafana"))
    of_file = importlib.util.spec_from_file_location("dashboards", DEPLOY / "grafana/check.py")
    dashboards = importlib.util.module_from_spec(of_file)
    of_file.loader.exec_module(dashboards)
    known = dashboards.known_metrics()
    # A target may have a label `environment`: prometheus.yml.
    known["up"] = ("gauge", {"environment"})
    rules = [
        (name, rule)
        for name in ("recording.yml", "alerts.yml")
        for group in yaml.safe_load((folder / name).read_text())["groups"]
        for rule in group["rules"]
    ]
    # The first part of the name of a recorded series names its labels.
    known |= {rule["record"]: ("gauge", set(rule["record"].split(":")[0].split("_"))) for _, rule in rules if "record" in rule}
    for name, rule in rules:
        where, text = f"{folder / name}: {rule.get('record') or rule['alert']}", rule["expr"]
        # A selector of several metrics has the labels of all of them.
        for selector, names in re.findall(r'({__name__=~"([a-z_|]+)"})', text):
            metrics = [known[metric] for metric in names.split("|")]
            known[names.replace("|", "_or_")] = (metrics[0][0], set().union(*(labels for _, labels in metrics)))
            text = text.replace(selector, names.replace("|", "_or_"))
        used = re.findall(r"\$labels\.(\w+)", " ".join(rule.get("annotations", {}).values()))
        dashboards.problems.clear()
        dashboards.check_query(name, text, " ".join(f"{{{{{label}}}}}" for label in used), known, set())
        expect(where, not dashboards.problems, "; ".join(words.removeprefix(f"{name}: ") for words in dashboards.problems))
    for path in sorted(folder.glob("tests/*.yml")):
        for text in sorted(set(re.findall(r"series: '(.+)'", path.read_text()))):
            name, _, labels = text.partition("{")
            whole, added = dashboards.base(name, known)
            have = known.get(whole, ("", set()))[1] | dashboards.OF_PROMETHEUS | added
            wrong = set(re.findall(r'(\w+)="', labels)) - have
            expect(path, whole in known and not wrong, f"{name} does not exist, or has no label {', '.join(sorted(wrong))}")


# -------------------------------------------------------------------------------------------------------------------------------------

if len(sys.argv) != 2:
    sys.exit(__doc__)
if os.environ.get("PERENNIAL") and not PROGRAM.is_file():
    sys.exit(f"check: PERENNIAL names {PROGRAM}, which does not exist")
KUSTOMIZE = sys.argv[1]
SETTINGS, COMMANDS = read_settings(), read_commands()
notes = []
for check in (settings, docker, compose, kubernetes, systemd, runbooks, prometheus):
    part = check.__name__
    check()
for note in notes:
    print(f"check: {note}")
if faults:
    sys.exit("\n".join(f"check: {words}" for words in faults))
print("check: " + ", ".join(f"{name} {count}" for name, count in checked.items()) + " checks passed")
