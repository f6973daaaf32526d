"""A whole installation of Perennial on this machine: a private Kafka, the program, the files of the Debian package, and Apple.

A folder stands for /. The scripts of an operator run against it when the places below are replaced (Scene.here). A stand-in for
systemctl reads the units of deploy/systemd and starts what they say, as the user who runs the test. What only systemd can do, such as
the protection of files, is not there: deploy/tests/install.sh and systemd-analyze look at that.

Apple is `perennial simulate`: it posts notifications, plays the backend of the app, and serves Apple's API for refund requests.

Every process is a child of this one, and is ended by its own id at the end, also after a failure or Ctrl-C. If this process is killed,
the kernel kills its children.

Environment: KAFKA_HOME (needed), PERENNIAL (the program; .build/release/perennial otherwise), KEEP=1 (keeps the folder).
"""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
DEPLOY = HERE.parent
ROOT = DEPLOY.parent

# What the pages name. They are replaced by the same places below the folder of the scene.
PLACES = ("/etc/perennial", "/var/lib/perennial", "/var/tmp", "/usr/bin/perennial", "/usr/lib/perennial")

# The process of each unit and its port: docs/operate/runbooks/README.md and deploy/debian/instances.
PORTS = {
    "ingest": 9464,
    "entitlements@1": 9465,
    "entitlements@2": 9466,
    "churn@1": 9467,
    "churn@2": 9468,
    "consumption@1": 9469,
    "consumption@2": 9470,
    "api": 9471,
    # Only while the page scale-out-and-in runs.
    "consumption@3": 9472,
}
# As deploy/debian/instances and the pages have it.
RUNNING = [name for name in PORTS if name != "consumption@3"]
INGEST, API = 8443, 8080

# Two threads of a worker, and a third process of consumption, have partitions. More would only take time.
PARTITIONS = 4
# Roots of simulated stores with these seeds are trusted. Each seed has customers of its own.
SEEDS = range(1, 7)
# Those whose API for refund requests is used. Each has a key of its own.
WITH_API = (1, 3)

# A quiet machine needs a twentieth of these.
READY_WITHIN = 120
STOP_WITHIN = 30


class Failure(Exception):
    """A sentence for the person who runs the test."""


def unit_of(name):
    return f"perennial-{name}.service"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_until(what, ready, within, every=0.2):
    """The first true value of `ready`."""
    end = time.monotonic() + within
    while True:
        value = ready()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure(f"{what} did not happen within {within} s")
        time.sleep(every)


def child(command, **options):
    """Starts a process that the kernel kills when the thread that has started it ends."""
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)], start_new_session=True, close_fds=True, **options
    )


def end(process, sign=signal.SIGTERM, within=STOP_WITHIN):
    if process.poll() is None:
        process.send_signal(sign)
        try:
            process.wait(within)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait()


def get(port, path, timeout=5.0):
    """Status and text; (0, reason) if nobody answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except (OSError, http.client.HTTPException) as error:
        return 0, str(error)
    finally:
        connection.close()


# ---- systemctl ------------------------------------------------------------------------------------------------------------------------


# The only use of `systemctl show`: the process of a unit, and 0 if it does not run.
MAIN_PID = ["--property=MainPID", "--value"]


class Unit:
    """What a unit says. Later lines win, as in systemd, and a unit may have several variables."""

    def __init__(self, folder, name):
        stem, _, kind = name.rpartition(".")
        prefix, at, self.instance = stem.partition("@")
        file = folder / f"{prefix}{at}.{kind}"
        if not re.fullmatch(r"perennial-[a-z]+@?", prefix + at) or not file.is_file():
            raise Failure(f"Unit {name} not found.")
        self.values, self.variables = {}, {}
        # The drop-in of all units is read after the unit.
        for part in (file, *sorted(folder.glob("perennial-.service.d/*.conf"))):
            for line in part.read_text(encoding="utf-8").splitlines():
                key, equals, value = line.partition("=")
                if line.startswith(("#", "[")) or not equals:
                    continue
                value = value.replace("%i", self.instance)
                if key == "Environment":
                    for pair in shlex.split(value):
                        variable, _, text = pair.partition("=")
                        self.variables[variable] = text
                else:
                    self.values[key] = value
        self.process, self.wanted, self.again = None, False, None


class Units(threading.Thread):
    """The stand-in for systemd. All processes of units are children of this thread."""

    def __init__(self, scene):
        super().__init__(daemon=True)
        self.scene = scene
        self.units, self.enabled = {}, set()
        self.address = scene.root / "run/systemctl"
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(self.address))
        self.socket.listen(8)
        self.socket.settimeout(0.2)
        self.ending = False

    def run(self):
        while not self.ending:
            self.restart_failed()
            try:
                asked, _ = self.socket.accept()
            except TimeoutError:
                continue
            with asked, asked.makefile("rw") as file:
                try:
                    code, words = self.answer(json.loads(file.readline()))
                except Failure as failure:
                    code, words = 1, str(failure)
                with contextlib.suppress(OSError):
                    file.write(json.dumps([code, words]) + "\n")
                    file.flush()

    def unit(self, name):
        if name not in self.units:
            self.units[name] = Unit(DEPLOY / "systemd", name)
        return self.units[name]

    def answer(self, arguments):
        arguments = [one for one in arguments if one not in ("--quiet", "-q", "--now")]
        if not arguments:
            raise Failure("systemctl: no command")
        verb, options = arguments[0], [one for one in arguments[1:] if one.startswith("-")]
        if options != (MAIN_PID if verb == "show" else []):
            raise Failure(f"systemctl {verb}: the stand-in does not know {' '.join(options) or 'it without options'}")
        names = [one if "." in one else f"{one}.service" for one in arguments[1:] if one not in options]
        units = [self.unit(name) for name in names]
        active = [unit for unit in units if self.is_active(unit)]
        match verb:
            case "daemon-reload":
                return 0, ""
            case "start":
                for unit in units:
                    self.start_unit(unit)
            case "stop":
                self.stop_units(units)
            case "restart":
                self.stop_units(units)
                for unit in units:
                    self.start_unit(unit)
            case "try-restart":
                self.stop_units(active)
                for unit in active:
                    self.start_unit(unit)
            case "reload":
                for unit in active:
                    unit.process.send_signal(signal.SIGHUP)
            case "is-active":
                words = "\n".join("active" if unit in active else "inactive" for unit in units)
                return (0 if active else 3), words
            case "enable":
                self.enabled |= set(names)
            case "disable":
                self.enabled -= set(names)
            case "show":
                return 0, "\n\n".join(str(unit.process.pid if unit in active else 0) for unit in units)
            case _:
                raise Failure(f"systemctl: the stand-in does not know {verb}")
        return 0, ""

    @staticmethod
    def is_active(unit):
        return unit.process is not None and unit.process.poll() is None

    def start_unit(self, unit):
        if self.is_active(unit):
            return
        values, scene = unit.values, self.scene
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "LANG": "C.UTF-8"} | unit.variables
        if "EnvironmentFile" in values:
            file = pathlib.Path(scene.here(values["EnvironmentFile"]))
            if not file.is_file():
                raise Failure(f"Failed to load environment files: {file}")
            for line in file.read_text(encoding="utf-8").splitlines():
                key, equals, value = line.partition("=")
                if equals and not line.startswith("#"):
                    environment[key] = value
        if "StateDirectory" in values:
            pathlib.Path(scene.here(f"/var/lib/{values['StateDirectory']}")).mkdir(0o750, parents=True, exist_ok=True)
        command = [scene.here(word) for word in shlex.split(values["ExecStart"])]
        name = f"{command[1]}@{unit.instance}" if unit.instance else command[1]
        with (scene.root / "log" / f"{name}.log").open("ab") as log:
            unit.process = child(command, env=environment, cwd=scene.root, stdout=log, stderr=log)
        unit.wanted, unit.again = True, None

    def stop_units(self, units):
        running = [unit for unit in units if self.is_active(unit)]
        for unit in units:
            unit.wanted, unit.again = False, None
        for unit in running:
            unit.process.send_signal(signal.Signals[unit.values["KillSignal"]])
        for unit in running:
            try:
                unit.process.wait(float(unit.values["TimeoutStopSec"]))
            except subprocess.TimeoutExpired:
                unit.process.kill()
                unit.process.wait()

    def restart_failed(self):
        """Restart=on-failure, with RestartSec and RestartPreventExitStatus."""
        now = time.monotonic()
        for unit in self.units.values():
            if not unit.wanted or unit.process is None or unit.process.poll() is None:
                continue
            code, values = unit.process.returncode, unit.values
            if unit.again is not None:
                if now >= unit.again:
                    with contextlib.suppress(Failure):
                        self.start_unit(unit)
            elif code != 0 and values["Restart"] == "on-failure" and str(code) != values["RestartPreventExitStatus"]:
                unit.again = now + float(values["RestartSec"])
            else:
                unit.wanted = False

    def close(self):
        self.ending = True
        self.join()
        self.stop_units(list(self.units.values()))
        self.socket.close()


def ask_units(address, arguments):
    """The client of Units: exit code and words."""
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(str(address))
        with one.makefile("rw") as file:
            file.write(json.dumps(arguments) + "\n")
            file.flush()
            return json.loads(file.readline())


# ---- Kafka ----------------------------------------------------------------------------------------------------------------------------

# Tools live for a second or two: a compiler that takes its time does not pay.
OF_TOOLS = "-Xmx256m -XX:TieredStopAtLevel=1"
OF_BROKERS = "-Xms256m -Xmx384m"


class Kafka:
    """One broker, or three that are controllers as well."""

    def __init__(self, home, folder, brokers):
        self.home, self.folder = home, folder
        self.ports = [(free_port(), free_port()) for _ in range(brokers)]
        self.processes = [None] * brokers
        # Any 16 bytes in Kafka's letters.
        self.cluster = "c2NlbmUtb2YtcGVyZW5uaQ"
        self.environment = os.environ | {"KAFKA_HEAP_OPTS": OF_TOOLS, "PATH": f"{home}/bin:{os.environ['PATH']}"}

    @property
    def servers(self):
        return ",".join(f"127.0.0.1:{port}" for port, _ in self.ports)

    def format(self, number):
        folder = self.folder / str(number)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        port, controller = self.ports[number]
        copies = min(3, len(self.ports))
        voters = ",".join(f"{one + 1}@127.0.0.1:{ports[1]}" for one, ports in enumerate(self.ports))
        settings = {
            "process.roles": "broker,controller",
            "node.id": number + 1,
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": voters,
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": folder / "data",
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": copies,
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": max(1, copies - 1),
            "transaction.state.log.num.partitions": 4,
            "group.initial.rebalance.delay.ms": 0,
            # So that a dead broker is noticed soon. Kafka's own default is 9 s.
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
        }
        file = folder / "server.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
        self.tool("kafka-storage.sh", "format", "-t", self.cluster, "-c", file)

    def start(self, number):
        folder = self.folder / str(number)
        with (folder / "log").open("ab") as log:
            self.processes[number] = child(
                [f"{self.home}/bin/kafka-server-start.sh", folder / "server.properties"],
                env=self.environment | {"KAFKA_HEAP_OPTS": OF_BROKERS, "LOG_DIR": str(folder)},
                stdout=log,
                stderr=log,
            )

    def start_all(self):
        for number in range(len(self.ports)):
            self.format(number)
        for number in range(len(self.ports)):
            self.start(number)
        self.wait()

    def wait(self):
        def answers():
            for number, process in enumerate(self.processes):
                if process is None or process.poll() is not None:
                    text = (self.folder / str(number) / "log").read_text(errors="replace")[-2000:]
                    raise Failure(f"broker {number + 1} does not run:\n{text}")
            # Without a listener, the tool would wait for a minute.
            for port, _ in self.ports:
                with socket.socket() as one:
                    if one.connect_ex(("127.0.0.1", port)) != 0:
                        return False
            return self.run("kafka-topics.sh", "--bootstrap-server", self.servers, "--list").returncode == 0

        wait_until("an answer of Kafka", answers, READY_WITHIN)

    def run(self, name, *arguments, timeout=120, **options):
        return subprocess.run(
            [f"{self.home}/bin/{name}", *map(str, arguments)],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            **options,
        )

    def tool(self, name, *arguments, **options):
        """What the tool prints. Its failure is one of the scene."""
        run = self.run(name, *arguments, **options)
        if run.returncode != 0:
            raise Failure(f"{name} {shlex.join(map(str, arguments))} ended with {run.returncode}:\n{run.stdout}{run.stderr}")
        return run.stdout

    def ask(self, name, *arguments, **options):
        return self.tool(name, "--bootstrap-server", self.servers, *arguments, **options)

    def close(self):
        running = [process for process in self.processes if process is not None]
        for process in running:
            # A frozen one would not hear.
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in running:
            end(process)


# ---- The scene ------------------------------------------------------------------------------------------------------------------------


class Scene(contextlib.AbstractContextManager):
    def __init__(self, brokers=1, settings=None, say=print):
        self.brokers, self.more, self.say = brokers, settings or {}, say
        self.children, self.units, self.kafka = [], None, None
        program = os.environ.get("PERENNIAL") or ROOT / ".build/release/perennial"
        self.program = pathlib.Path(program).resolve()
        if not os.access(self.program, os.X_OK):
            raise Failure(f"there is no program {self.program}: run make release, or set PERENNIAL")
        home = os.environ.get("KAFKA_HOME", "")
        if not pathlib.Path(home, "bin/kafka-server-start.sh").is_file():
            raise Failure("set KAFKA_HOME to an unpacked Kafka 3.9 or later")
        self.kafka_home = pathlib.Path(home).resolve()
        for tool in ("java", "openssl", "curl", "setpriv", "dpkg-deb"):
            if shutil.which(tool) is None:
                raise Failure(f"{tool} is missing")
        for port in (*PORTS.values(), INGEST, API):
            with socket.socket() as one:
                # A port whose last connections have just ended is free.
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    one.bind(("127.0.0.1", port))
                except OSError:
                    raise Failure(f"port {port} is taken, and the pages name it: end the process that listens on it") from None

    def __enter__(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="perennial-scene-"))
        try:
            self.build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def here(self, text):
        """The same text with the places of this scene."""
        return re.sub(rf"(?<![\w.}}-])(?:{'|'.join(PLACES)})(?![\w])", lambda found: f"{self.root}{found.group()}", text)

    def path(self, place):
        return pathlib.Path(self.here(place))

    # ---- Building

    def build(self):
        for folder in ("run", "log", "store", "tls", *(one.lstrip("/") for one in PLACES[:3]), "usr/bin", "usr/lib/perennial"):
            (self.root / folder).mkdir(parents=True)
        (self.root / "usr/bin/perennial").symlink_to(self.program)
        shutil.copy(DEPLOY / "debian/probe", self.root / "usr/lib/perennial")
        self.put("usr/bin/systemctl", f'#!/bin/sh\nexec "{sys.executable}" -E -S "{__file__}" "{self.root}/run/systemctl" "$@"\n', 0o755)
        # Everything in the test runs as one user.
        self.put("usr/bin/runuser", '#!/bin/sh\n[ "$1 $2 $3" = "-u perennial --" ] && shift 3 && exec "$@"\n', 0o755)
        self.kafka = Kafka(self.kafka_home, self.root / "kafka", self.brokers)
        self.servers = self.kafka.servers
        self.environment = self.kafka.environment | {
            "PATH": f"{self.root}/usr/bin:{self.kafka.environment['PATH']}",
            "KAFKA": self.servers,
            "EDITOR": "true",
            "TMPDIR": str(self.root / "var/tmp"),
        }
        for name in [name for name in self.environment if name.startswith("PERENNIAL")]:
            del self.environment[name]
        self.kafka.start_all()
        self.make_store()
        self.make_certificates()
        self.lay_out()
        self.units = Units(self)
        self.units.start()
        self.perennial("topics", "apply")
        self.systemctl("start", *map(unit_of, RUNNING))
        self.wait_ready()

    def put(self, place, text, mode=0o640):
        file = self.root / place.lstrip("/")
        file.write_text(text, encoding="utf-8")
        file.chmod(mode)
        return file

    def make_store(self):
        """What the simulated store signs with. The same seed gives the same files."""
        self.apple_ports = {seed: free_port() for seed in WITH_API}
        for seed in SEEDS:
            command = ["simulate", "--seed", seed, "--subscribers", 1, "--out", self.root / f"store/{seed}"]
            command += ["--root", self.root / f"store/{seed}.pem"]
            if seed in WITH_API:
                command += ["--apps", self.root / "store/apps.json", "--api", "127.0.0.1:0", "--api-for", "1s"]
                command += ["--api-key", self.root / f"store/{seed}.p8", "--api-settings", self.root / f"store/{seed}.conf"]
            self.run_program(*command)

    def openssl(self, *arguments):
        run = subprocess.run(
            ["openssl", *map(str, arguments)], cwd=self.root / "tls", capture_output=True, text=True, check=False
        )
        if run.returncode != 0:
            raise Failure(f"openssl {shlex.join(map(str, arguments))}: {run.stderr}")

    def make_certificates(self):
        self.openssl(
            *"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out ca.pem -days 90 -subj".split(),
            "/CN=Authority of the test",
        )
        self.make_certificate("tls", 90)

    def make_certificate(self, name, days):
        """NAME.pem and NAME.key in the folder tls, signed by the authority of the scene."""
        self.openssl(
            *"req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost".split(),
            *("-keyout", f"{name}.key", "-out", f"{name}.csr", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
        )
        self.openssl(
            *f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -copy_extensions copy".split(),
            *("-days", days, "-out", f"{name}.pem"),
        )

    def lay_out(self):
        etc = self.path("/etc/perennial")
        for file in (DEPLOY / "debian/instances").glob("*.env"):
            self.put(f"/etc/perennial/{file.name}", file.read_text(encoding="utf-8"))
        for source, name in (
            ("store/apps.json", "apps.json"),
            ("store/1.p8", "SubscriptionKey.p8"),
            ("tls/tls.pem", "tls.pem"),
            ("tls/tls.key", "tls.key"),
        ):
            self.put(f"/etc/perennial/{name}", (self.root / source).read_text(encoding="utf-8"))
        shutil.copy(DEPLOY / "compose/refund-policy.json", etc / "refund-policy.json")
        self.put("/etc/perennial/usage-token", "usage-token-of-the-test\n")
        self.put("/etc/perennial/api-token", "api-token-of-the-test\n")
        settings = {
            "kafka.bootstrap.servers": self.servers,
            "partitions": PARTITIONS,
            "topics.replication.factor": self.brokers,
            "topics.min.insync.replicas": max(1, self.brokers - 1),
            "apps": etc / "apps.json",
            "ingest.listen": f"127.0.0.1:{INGEST}",
            "ingest.tls.certificate": etc / "tls.pem",
            "ingest.tls.key": etc / "tls.key",
            "usage.token": f"file:{etc}/usage-token",
            "consumption.policy": etc / "refund-policy.json",
            "api.listen": f"127.0.0.1:{API}",
            "api.token": f"file:{etc}/api-token",
            # Memory of this machine: there is little state.
            "state.cache.bytes": 32 << 20,
            "verify.roots": ",".join(str(self.root / f"store/{seed}.pem") for seed in SEEDS),
            "consumption.wait.ms": 1000,
            # So that a decision that waits for a second is not made a minute later.
            "tick.interval.ms": 1000,
        }
        self.put("/etc/perennial/perennial.conf", self.here((DEPLOY / "debian/perennial.conf").read_text(encoding="utf-8")))
        self.configure(settings | self.apple(WITH_API[0]) | self.more)

    def apple(self, seed):
        """The settings for the API of a store."""
        lines = (self.root / f"store/{seed}.conf").read_text(encoding="utf-8").splitlines()
        settings = dict(re.split(r" *= *", line, maxsplit=1) for line in lines if "=" in line and not line.startswith("#"))
        shutil.copyfile(self.root / f"store/{seed}.p8", self.path("/etc/perennial/SubscriptionKey.p8"))
        return {
            "apple.issuer.id": settings["apple.issuer.id"],
            "apple.key.id": settings["apple.key.id"],
            "apple.key": self.path("/etc/perennial/SubscriptionKey.p8"),
            "apple.api.production": f"http://127.0.0.1:{self.apple_ports[seed]}",
        }

    def configure(self, settings):
        """Changes lines of perennial.conf, as an operator does: a line that is a comment is used, another one is added at the end."""
        file = self.path("/etc/perennial/perennial.conf")
        text = file.read_text(encoding="utf-8")
        for key, value in settings.items():
            line = f"{key} = {value}"
            text, count = re.subn(rf"^{re.escape(key)} *=.*$", line, text, flags=re.MULTILINE)
            if count == 0:
                text, count = re.subn(rf"^#{re.escape(key)} *=.*$", line, text, count=1, flags=re.MULTILINE)
            if count == 0:
                text += line + "\n"
        file.write_text(text, encoding="utf-8")

    # ---- Using

    def run_program(self, *arguments, timeout=180):
        run = subprocess.run(
            [self.root / "usr/bin/perennial", *map(str, arguments)],
            env=self.environment,
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if run.returncode != 0:
            raise Failure(f"perennial {shlex.join(map(str, arguments))} ended with {run.returncode}:\n{run.stdout}{run.stderr}")
        return run.stdout

    def perennial(self, *arguments, **options):
        return self.run_program(*arguments, "--config", self.path("/etc/perennial/perennial.conf"), **options)

    def systemctl(self, *arguments):
        code, words = ask_units(self.units.address, list(arguments))
        if code not in (0, 3):
            raise Failure(words)
        return words

    def start(self, *names):
        self.systemctl("start", *map(unit_of, names))

    def stop(self, *names):
        self.systemctl("stop", *map(unit_of, names))

    def restart(self, *names):
        self.systemctl("restart", *map(unit_of, names))

    def pid(self, name):
        return int(self.systemctl("show", *MAIN_PID, unit_of(name))) or None

    def is_ready(self, name):
        return get(PORTS[name], "/readyz")[0] == 200

    def wait_ready(self, names=None, within=READY_WITHIN):
        for name in names or RUNNING:
            wait_until(f"readiness of {name}", lambda one=name: self.is_ready(one), within)

    def metric(self, name, metric, labels=""):
        """The sum of the series of a process whose text contains `labels`."""
        text = get(PORTS[name], "/metrics")[1]
        return sum(
            float(line.rsplit(" ", 1)[1])
            for line in text.splitlines()
            if re.match(rf"{metric}[{{ ]", line) and labels in line and not line.endswith("NaN")
        )

    def spawn(self, name, command, **options):
        """A process of the test, which ends with the scene."""
        with (self.root / "log" / f"{name}.log").open("ab") as log:
            process = child(command, env=self.environment, cwd=self.root, stdout=log, stderr=log, **options)
        self.children.append(process)
        return process

    def simulate(self, seed, *arguments, api=False):
        """Apple and the backend of the app, in a process of their own."""
        command = [self.root / "usr/bin/perennial", "simulate", "--seed", seed, "--ca", self.root / "tls/ca.pem"]
        command += ["--url", f"https://127.0.0.1:{INGEST}/notifications"]
        command += ["--usage", f"https://127.0.0.1:{INGEST}/usage", "--usage-token", f"file:{self.path('/etc/perennial/usage-token')}"]
        if api:
            command += ["--api", f"127.0.0.1:{self.apple_ports[seed]}"]
        return self.spawn(f"simulate-{seed}", [*command, *arguments])

    @contextlib.contextmanager
    def store(self, seed, *arguments):
        """Files of signed notifications, in the order in which they are posted."""
        folder = self.root / f"store/payloads-{seed}"
        try:
            self.run_program("simulate", "--seed", seed, "--out", folder, *arguments, timeout=600)
            yield sorted(folder.glob("*.jws"))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def payloads(self, seed, *arguments):
        with self.store(seed, *arguments) as files:
            return [file.read_text(encoding="utf-8").strip() for file in files]

    def client(self):
        context = ssl.create_default_context(cafile=str(self.root / "tls/ca.pem"))
        return http.client.HTTPSConnection("127.0.0.1", INGEST, timeout=10, context=context)

    def post(self, payloads, headers=None, path="/notifications"):
        """Posts as Apple does, on one connection. The number of answers by status; 0 counts posts without an answer."""
        answers, connection = {}, self.client()
        try:
            for payload in payloads:
                try:
                    body = json.dumps({"signedPayload": payload})
                    connection.request("POST", path, body, {"Content-Type": "application/json"} | (headers or {}))
                    answer = connection.getresponse()
                    answer.read()
                    status = answer.status
                except (OSError, http.client.HTTPException):
                    status = 0
                    connection.close()
                    connection = self.client()
                answers[status] = answers.get(status, 0) + 1
        finally:
            connection.close()
        return answers

    def package(self):
        """/var/tmp/perennial.deb with the program, as much of the package as the pages unpack."""
        tree = self.root / "run/package"
        shutil.rmtree(tree, ignore_errors=True)
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "usr/bin").mkdir(parents=True)
        shutil.copy(self.program, tree / "usr/bin/perennial")
        (tree / "DEBIAN/control").write_text(
            "Package: perennial\nVersion: 0\nArchitecture: all\nMaintainer: the test <test@example.com>\nDescription: the program\n"
        )
        command = ["dpkg-deb", "-Znone", "--root-owner-group", "--build", tree, self.path("/var/tmp/perennial.deb")]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def state(self):
        """What each process says, for the report of a failure."""
        lines = []
        for name, port in PORTS.items():
            active = self.systemctl("is-active", unit_of(name))
            lines.append(f"{name}: {active}, /readyz {' '.join(map(str, get(port, '/readyz')))}")
            log = self.root / "log" / f"{name}.log"
            if log.exists():
                lines += [f"    {line[:400]}" for line in log.read_text(errors="replace").splitlines()[-3:]]
        for number, process in enumerate(self.kafka.processes):
            lines.append(f"broker {number + 1}: {'runs' if process and process.poll() is None else 'does not run'}")
        return "\n".join(lines)

    def close(self):
        if self.units is not None and self.units.is_alive():
            self.units.close()
        for process in self.children:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
            end(process)
        if self.kafka is not None:
            self.kafka.close()
        if os.environ.get("KEEP"):
            self.say(f"the folder of the scene: {self.root}")
        else:
            shutil.rmtree(self.root, ignore_errors=True)


def end_on_signals():
    """SIGTERM and SIGHUP end the test as Ctrl-C does, so that everything is cleaned up."""

    def interrupt(number, _):
        raise KeyboardInterrupt(signal.Signals(number).name)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)


if __name__ == "__main__":
    # The stand-in for systemctl: scene.py ADDRESS ARGUMENTS.
    code, words = ask_units(sys.argv[1], sys.argv[2:])
    if words:
        print(words, file=sys.stderr if code == 1 else sys.stdout)
    sys.exit(code)
