#!/usr/bin/env python3
"""Makes every alert fire and end, with a real Prometheus and real faults: `make deploy-test`, or alerts.py [ALERT...|queries].

Prometheus scrapes a whole installation (scene.py) with the rules of deploy/prometheus. Minutes and hours of the rules are 60 times
shorter, days 288 times.
Each case below is a row of deploy/prometheus/faults.md: it makes one or more alerts fire, waits until Prometheus says so, removes the
fault, and waits until they have ended. Where the runbook has the commands that end it, the case runs them from the page (cure).
Every alert has a case.

`queries` runs only the queries of the dashboards against this Prometheus. Without arguments, everything runs; the queries come first,
while nothing has happened to the installation. What it needs: scene.py, and Prometheus 2.42 or newer.
"""

import base64
import concurrent.futures
import contextlib
import ctypes
import datetime
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
import urllib.parse
import zoneinfo

sys.dont_write_bytecode = True
from runbooks import FOLDER, allow_exit_codes  # noqa: E402
from scene import (  # noqa: E402
    API,
    DEPLOY,
    PARTITIONS,
    PORTS,
    RUNNING,
    WITH_API,
    Failure,
    Scene,
    end,
    end_on_signals,
    free_port,
    get,
    wait_until,
)

# 15 s / 60 are 250 ms. Twice that leaves four samples in the shortest window, and time for other work of a small machine.
INTERVAL = "500ms"
# The longest time from a fault to its alert here is that of an age of a minute and ten minutes of `for`. A busy machine needs longer.
FIRES_WITHIN = 240
# A day without notifications, which is five minutes here, comes before one of them.
FIRES_AFTER_A_DAY_WITHIN = 300 + FIRES_WITHIN // 2
ENDS_WITHIN = 240

# Stores with these seeds: what has been posted once is a repetition.
SEED_OF_CUSTOMERS, SEED_OF_PAST, SEED_OF_REFUNDS, SEED_OF_STRANGERS, SEED_OF_PAYMENTS = WITH_API[0], 2, WITH_API[1], 4, 5

WORKERS = [name for name in RUNNING if "@" in name]
CONSUMPTION = [name for name in RUNNING if name.startswith("consumption@")]


# ---- Prometheus -----------------------------------------------------------------------------------------------------------------------


def shorter(text):
    """The command of faults.md."""
    text = re.sub(r"(for: |\[)(\d+)m", r"\1\2s", text)
    text = re.sub(r"(for: |\[)(\d+)h", r"\1\2m", text)
    return text.replace("[1d]", "[5m]").replace("[7d]", "[35m]")


class Prometheus:
    def __init__(self, scene):
        self.scene, self.port = scene, free_port()
        self.folder = scene.root / "prometheus"
        self.folder.mkdir()
        for name in ("alerts.yml", "recording.yml"):
            text = shorter((DEPLOY / "prometheus" / name).read_text(encoding="utf-8"))
            if re.search(r"(for: |\[)\d+[hd]", text):
                raise Failure(f"{name} has a duration that is not made shorter")
            (self.folder / name).write_text(text, encoding="utf-8")
        text = (DEPLOY / "prometheus/prometheus.yml").read_text(encoding="utf-8")
        interval = re.compile(r"^( *(?:scrape_interval|scrape_timeout|evaluation_interval): ).*$", re.M)
        text, intervals = interval.subn(rf"\g<1>{INTERVAL}", text)
        # The processes of this test have other addresses, and come and go.
        targets = re.compile(r"^    static_configs:\n      - targets: \[\"([a-z]+)[-1-9]*:9464\".*\]$", re.M)
        place = r"    file_sd_configs:\n      - {files: ['targets/\1.json'], refresh_interval: 1s}"
        text, self.jobs = targets.sub(place, text), targets.findall(text)
        if intervals != 3 or set(self.jobs) != {name.partition("@")[0] for name in RUNNING}:
            raise Failure(f"prometheus.yml has another form than this test knows: {intervals} intervals, jobs {self.jobs}")
        (self.folder / "prometheus.yml").write_text(text, encoding="utf-8")
        (self.folder / "targets").mkdir()
        for job in self.jobs:
            self.scrape(job)
        self.process = scene.spawn(
            "prometheus",
            [
                "prometheus",
                f"--config.file={self.folder}/prometheus.yml",
                f"--storage.tsdb.path={self.folder}/data",
                f"--web.listen-address=127.0.0.1:{self.port}",
                "--log.level=warn",
            ],
        )
        wait_until("an answer of Prometheus", lambda: get(self.port, "/-/ready")[0] == 200, 60)

    def scrape(self, job, *more):
        """The processes of a job, and more of them."""
        ports = [PORTS[name] for name in RUNNING if name.partition("@")[0] == job]
        targets = [{"targets": [f"127.0.0.1:{port}" for port in (*ports, *more)]}]
        file = self.folder / "targets" / f"{job}.json"
        # In one step, because Prometheus reads it whenever it changes.
        file.with_suffix(".new").write_text(json.dumps(targets), encoding="utf-8")
        file.with_suffix(".new").rename(file)

    def ask(self, path, **arguments):
        query = f"?{urllib.parse.urlencode(arguments)}" if arguments else ""
        status, text = get(self.port, f"/api/v1/{path}{query}", timeout=30)
        if status != 200:
            raise Failure(f"Prometheus answers {status} to {path}: {text[:500]}")
        return json.loads(text)["data"]

    def firing(self):
        """Labels of each alert that fires."""
        return [one["labels"] for one in self.ask("alerts")["alerts"] if one["state"] == "firing"]

    def query(self, text):
        return self.ask("query", query=text)["result"]


def rules():
    """Every rule as "Name severity", of which a template is a page here."""
    text = (DEPLOY / "prometheus/alerts.yml").read_text(encoding="utf-8")
    found = re.findall(r"^ *- alert: (\w+)\n(?:.*\n)*?^ *severity: (\S+)", text, flags=re.M)
    return [f"{name} {'page' if 'page' in severity else 'ticket'}" for name, severity in found]


# ---- What the cases use ---------------------------------------------------------------------------------------------------------------


class World:
    def __init__(self, scene):
        self.scene, self.kafka = scene, scene.kafka
        self.past = scene.payloads(SEED_OF_PAST, "--subscribers", "1000")
        self.taken = 0
        self.prometheus = Prometheus(scene)

    def topic(self, name):
        return f"appstore.production.{name}"

    def take(self, count):
        """Notifications of the past that were not posted yet."""
        payloads = self.past[self.taken : self.taken + count]
        if len(payloads) < count:
            raise Failure("the test has too few notifications: make SEED_OF_PAST larger")
        self.taken += count
        return payloads

    def post(self, count):
        answers = self.scene.post(self.take(count))
        if answers != {200: count}:
            raise Failure(f"ingest has answered {answers}")

    def post_many(self, payloads):
        """On several connections, as Apple does. Their order does not matter to the workers."""
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for answers in pool.map(self.scene.post, [payloads[number::8] for number in range(8)]):
                if set(answers) - {200}:
                    raise Failure(f"ingest has answered {answers}")

    def configure(self, names, settings):
        self.scene.configure(settings)
        self.scene.restart(*names)

    def wait_for_workers(self, names=WORKERS):
        """Nothing is left to read."""
        for name in names:
            wait_until(f"the end of the backlog of {name}", lambda one=name: self.scene.metric(one, "perennial_lag_records") == 0, 120)

    def produce(self, topic, text, *options):
        self.kafka.ask("kafka-console-producer.sh", "--topic", self.topic(topic), *options, input=text)

    def cure(self, page):
        """Runs the commands below "Cure" of a runbook, as an operator does."""
        text = (FOLDER / f"{page}.md").read_text(encoding="utf-8")
        section = text.partition("\n## Cure\n")[2].partition("\n## ")[0]
        blocks = [textwrap.dedent(block) for block in re.findall(r"^ *```sh\n(.*?)^ *```", section, re.M | re.S)]
        if not blocks:
            raise Failure(f"{page}.md has no commands below Cure")
        for block in blocks:
            command = ["bash", "-euo", "pipefail", "-c", self.scene.here(allow_exit_codes(block))]
            run = subprocess.run(
                command, env=self.scene.environment, cwd=self.scene.root, capture_output=True, text=True, timeout=180, check=False
            )
            if run.returncode != 0:
                raise Failure(f"{page}.md: the cure ended with {run.returncode}:\n{block}{run.stdout}{run.stderr}")

    def repair(self):
        """What a case that has failed may have left behind."""
        for cure in (
            lambda: self.limit_consumers(None),
            lambda: self.scene.perennial("topics", "apply"),
            self.scene.lay_out,
            lambda: self.scene.restart(*RUNNING),
            self.scene.wait_ready,
        ):
            with contextlib.suppress(Failure):
                cure()

    def limit_consumers(self, rate):
        change = ["--delete-config", "consumer_byte_rate"] if rate is None else ["--add-config", f"consumer_byte_rate={rate}"]
        self.kafka.ask("kafka-configs.sh", "--alter", "--entity-type", "clients", "--entity-default", *change)


class Repeated(threading.Thread):
    """Does something again and again until the block ends."""

    def __init__(self, what, every):
        super().__init__(daemon=True)
        self.what, self.every, self.ended = what, every, threading.Event()

    def run(self):
        while not self.ended.wait(self.every):
            with contextlib.suppress(Failure, OSError, http.client.HTTPException):
                self.what()

    def __enter__(self):
        self.start()

    def __exit__(self, *_):
        self.ended.set()
        self.join()


CASES = []


def case(*alerts):
    """A fault up to its `yield`, and its cure behind it. None needs root."""

    def add(function):
        CASES.append((alerts, contextlib.contextmanager(function), function.__name__))
        return function

    return add


# ---- Processes ------------------------------------------------------------------------------------------------------------------------


@case("PerennialDown page")
def every_process_of_a_role_is_down(world):
    world.scene.stop(*CONSUMPTION)
    yield
    world.scene.start(*CONSUMPTION)


@case("PerennialDown ticket")
def one_process_is_down(world):
    # The one that the page starts.
    world.scene.stop("entitlements@1")
    yield
    world.cure("perennial-down")


@case("PerennialNotReady page", "PerennialNotReady ticket")
def kafka_is_frozen(world):
    broker = world.kafka.processes[0]
    broker.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        broker.send_signal(signal.SIGCONT)


@case("PerennialRestartsOften ticket")
def a_process_is_killed_again_and_again(world):
    for _ in range(5):
        os.kill(world.scene.pid("churn@2"), signal.SIGKILL)
        wait_until("the end of a process", lambda: world.scene.pid("churn@2") is None, 10)
        world.scene.start("churn@2")
        # So that Prometheus sees each start.
        wait_until("an answer", lambda: get(PORTS["churn@2"], "/metrics")[0] == 200, 60)
        time.sleep(2)
    yield


# ---- Ingest ---------------------------------------------------------------------------------------------------------------------------

# What ingest believes because of ingest.trusted.proxies: the post comes from Apple's network.
FROM_APPLE = {"X-Forwarded-For": "17.1.2.3"}


@case("PerennialIngestAlarm page")
def apples_root_is_not_trusted(world):
    root = world.scene.root / f"store/{SEED_OF_STRANGERS}.pem"
    right, before = root.read_text(), world.scene.metric("ingest", "perennial_ingest_alarms_total")
    payloads = iter(world.scene.payloads(SEED_OF_STRANGERS, "--subscribers", "40", "--days", "30"))

    def refused():
        """Ingest reads the file again some time after it has changed. What it has accepted before then is only a repetition later."""
        world.scene.post([next(payloads)], FROM_APPLE)
        return world.scene.metric("ingest", "perennial_ingest_alarms_total") > before

    root.write_text((world.scene.root / "tls/ca.pem").read_text())
    try:
        wait_until("a refusal", refused, 60, every=2)
        yield
    finally:
        root.write_text(right)


@case("PerennialIngestAlarm ticket")
def an_app_is_missing(world):
    apps = world.scene.path("/etc/perennial/apps.json")
    right = apps.read_text()
    apps.write_text(right.replace('"bundleId":"com.example.', '"bundleId":"com.example.another.'))
    world.scene.restart("ingest")
    world.scene.wait_ready(["ingest"])
    answers = world.scene.post(world.scene.payloads(SEED_OF_STRANGERS, "--subscribers", "3", "--days", "30")[:1], FROM_APPLE)
    if answers != {200: 1}:
        raise Failure(f"ingest has answered {answers}")
    yield
    apps.write_text(right)
    world.scene.restart("ingest")
    world.scene.wait_ready(["ingest"])
    world.scene.perennial("dead-letters", "redrive", "rejected", "--reason", "wrong_app", "--apply")


@case("PerennialIngestUnanswered page")
def kafka_refuses_large_records(world):
    topic = ("--alter", "--entity-type", "topics", "--entity-name", world.topic("notifications"))
    world.kafka.ask("kafka-configs.sh", *topic, "--add-config", "max.message.bytes=200")
    with Repeated(lambda: world.scene.post(world.past[-5:]), 0.5):
        yield
    world.cure("perennial-ingest-unanswered")


@case("PerennialNotificationsLate ticket")
def notifications_are_old(world):
    world.post(50)
    yield


def replace_certificate(world, days):
    world.scene.make_certificate("other", days)
    for kind in ("key", "pem"):
        shutil.copyfile(world.scene.root / f"tls/other.{kind}", world.scene.path(f"/etc/perennial/tls.{kind}"))


@case("PerennialCertificateExpires ticket")
def the_certificate_ends_in_ten_days(world):
    replace_certificate(world, 10)
    yield
    replace_certificate(world, 90)


@case("PerennialCertificateExpires page")
def the_certificate_ends_in_two_days(world):
    replace_certificate(world, 2)
    yield
    replace_certificate(world, 90)


@case("PerennialCertificateNotLoaded ticket")
def the_certificate_is_damaged(world):
    file = world.scene.path("/etc/perennial/tls.pem")
    right = file.read_text()
    file.write_text("x")
    yield
    file.write_text(right)


@case("PerennialClockStopped ticket")
def notifications_of_sandbox_are_missing(world):
    world.kafka.ask("kafka-topics.sh", "--delete", "--topic", "appstore.sandbox.notifications")
    yield
    world.cure("perennial-clock-stopped")


@case("PerennialFlood ticket")
def strangers_ask_ingest(world):
    def ask():
        connection = world.scene.client()
        for _ in range(20):
            connection.request("GET", "/x")
            connection.getresponse().read()
        connection.close()

    with Repeated(ask, 0.5):
        yield


# ---- Workers --------------------------------------------------------------------------------------------------------------------------

# From linux/ptrace.h and linux/wait.h.
SEIZE, INTERRUPT, DETACH, ALL = 0x4206, 0x4207, 17, 0x40000000


@case("PerennialThreadHangs page")
def a_thread_hangs(world):
    folder = pathlib.Path(f"/proc/{world.scene.pid('entitlements@2')}/task")
    threads = [int(one.name) for one in folder.iterdir() if re.match(r"entitlements", (one / "comm").read_text())]
    named = {one: (folder / str(one) / "comm").read_text().strip() for one in threads}
    chosen = [one for one, name in named.items() if re.fullmatch(r"entitlements-\d+", name)]
    if not chosen:
        names = sorted({(one / "comm").read_text().strip() for one in folder.iterdir()})
        raise Failure(f"no thread is called entitlements-0: {names}")
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes, ptrace.restype = [ctypes.c_long] * 4, ctypes.c_long
    if ptrace(SEIZE, chosen[0], 0, 0) != 0 or ptrace(INTERRUPT, chosen[0], 0, 0) != 0:
        raise Failure(f"ptrace: {os.strerror(ctypes.get_errno())}")
    os.waitpid(chosen[0], ALL)
    try:
        yield
    finally:
        ptrace(DETACH, chosen[0], 0, 0)


@case("PerennialTransactionHangs page")
def a_transaction_hangs(world):
    topic = world.topic("notifications")
    command = [f"{world.scene.kafka_home}/bin/kafka-producer-perf-test.sh", "--topic", topic, "--num-records", "1000"]
    command += ["--record-size", "100", "--throughput", "10", "--transactional-id", "hang", "--transaction-duration-ms", "600000"]
    command += ["--producer-props", f"bootstrap.servers={world.kafka.servers}", "transaction.timeout.ms=900000"]
    writer = world.scene.spawn("hang", command)

    def begun():
        return [(partition, offset) for partition in range(PARTITIONS) for offset in open_transactions(world, topic, partition)]

    wait_until("an open transaction", begun, 60, every=1)
    writer.kill()
    writer.wait()
    yield
    for partition, offset in begun():
        place = ("--topic", topic, "--partition", partition, "--start-offset", offset)
        world.kafka.ask("kafka-transactions.sh", "abort", *place)


def open_transactions(world, topic, partition):
    """Offsets at which transactions of the writer begin: the last column of kafka-transactions.sh."""
    text = world.kafka.ask("kafka-transactions.sh", "describe-producers", "--topic", topic, "--partition", partition)
    return [line.split()[-1] for line in text.splitlines()[1:] if line.split() and line.split()[-1].isdigit()]


@case("PerennialRestoreLasts page")
def a_restore_is_slow(world):
    # So that there is something to restore.
    world.post(600)
    world.wait_for_workers()
    world.scene.stop("churn@1", "churn@2", "entitlements@1", "entitlements@2")
    shutil.rmtree(world.scene.path("/var/lib/perennial") / world.topic("entitlements"))
    world.limit_consumers(3000)
    world.scene.start("entitlements@1", "entitlements@2")
    yield
    world.limit_consumers(None)
    world.scene.start("churn@1", "churn@2")


@case("PerennialWorkerBehind page")
def a_worker_is_slow(world):
    world.limit_consumers(2000)
    world.post(300)
    yield
    world.limit_consumers(None)


@case("PerennialInputGap ticket", "PerennialPartitionStopped page")
def records_are_deleted_too_early(world):
    workers, topic = ("entitlements@1", "entitlements@2"), world.topic("notifications")
    world.scene.stop(*workers)
    world.post(40)
    world.wait_for_workers([name for name in WORKERS if name not in workers])
    ends = world.kafka.ask("kafka-get-offsets.sh", "--topic", topic, "--time", "latest").split()
    places = [{"topic": topic, "partition": int(one.split(":")[1]), "offset": int(one.split(":")[2])} for one in ends]
    file = world.scene.root / "run/delete.json"
    file.write_text(json.dumps({"partitions": places, "version": 1}))
    world.kafka.ask("kafka-delete-records.sh", "--offset-json-file", file)
    world.scene.start(*workers)
    yield
    world.scene.stop(*workers)

    wait_until("an empty group", lambda: group_is_empty(world, "entitlements"), 90, every=2)
    for place in places:
        # Where nothing was deleted, there is no gap: exit code 1.
        with contextlib.suppress(Failure):
            world.scene.perennial("offsets", "accept-gap", "entitlements", "--partition", place["partition"], "--apply")
    world.scene.start(*workers)


def group_is_empty(world, worker):
    text = world.kafka.ask("kafka-consumer-groups.sh", "--describe", "--state", "--group", world.topic(worker))
    return re.search(r"\b(Empty|Dead)\b", text) is not None


@case("PerennialDeadLetters ticket")
def somebody_else_writes_to_the_log(world):
    world.produce("notifications", "{\n")
    yield


@case("PerennialSlotsCollide ticket")
def two_processes_have_one_slot(world):
    port, folder = free_port(), world.scene.root / "run/second"
    folder.mkdir()
    options = ["--config", world.scene.path("/etc/perennial/perennial.conf"), "--worker.slot", "1"]
    options += ["--admin.listen", f"127.0.0.1:{port}", "--state.directory", folder]
    command = [world.scene.root / "usr/bin/perennial", "entitlements", *options]
    running = []

    def start():
        if not running or running[-1].poll() is not None:
            running.append(world.scene.spawn("second", command))

    world.prometheus.scrape("entitlements", port)
    try:
        # The thread must not end before its children: the kernel would end them.
        with Repeated(start, 1):
            yield
            for one in running:
                end(one)
    finally:
        world.prometheus.scrape("entitlements")
        world.scene.start("entitlements@1")


@case("PerennialAbortsRepeat ticket")
def kafka_refuses_a_dead_letter(world):
    topic = ("--alter", "--entity-type", "topics", "--entity-name", world.topic("entitlements.dead-letters"))
    world.kafka.ask("kafka-configs.sh", *topic, "--add-config", "cleanup.policy=compact")
    world.produce("notifications", "{\n")
    yield
    world.cure("perennial-aborts-repeat")


@case("PerennialStoresWiped ticket")
def stores_are_damaged(world):
    world.scene.stop("churn@1", "churn@2")
    files = [one for one in world.scene.path("/var/lib/perennial").rglob("CURRENT") if "churn" in str(one)]
    if not files:
        raise Failure("no store of churn was found")
    for file in files:
        file.write_text("")
    world.scene.start("churn@1", "churn@2")
    yield


@case("PerennialPartitionsLeftAlone ticket")
def a_topic_has_more_partitions(world):
    topic = world.topic("usage")
    world.kafka.ask("kafka-topics.sh", "--alter", "--topic", topic, "--partitions", PARTITIONS + 1)
    world.scene.restart(*CONSUMPTION)
    yield
    # The topic is not empty, so the worker would wait at a gap: it is built again from the beginning.
    world.scene.stop("ingest", *CONSUMPTION)
    wait_until("an empty group", lambda: group_is_empty(world, "consumption"), 90, every=2)
    world.kafka.ask("kafka-consumer-groups.sh", "--delete", "--group", world.topic("consumption"))
    for name in (topic, world.topic("consumption.changelog")):
        world.kafka.ask("kafka-topics.sh", "--delete", "--topic", name)
    wait_until("new topics", lambda: applied(world), 60, every=1)
    world.scene.start("ingest", *CONSUMPTION)


def applied(world):
    """Kafka deletes a topic some time after it was asked."""
    try:
        world.scene.perennial("topics", "apply")
    except Failure:
        return False
    return True


# ---- Refund requests ------------------------------------------------------------------------------------------------------------------


@case("PerennialRefundSenderTrouble ticket", "PerennialRefundDeadlineNear page")
def apple_does_not_answer(world):
    world.configure(CONSUMPTION, world.scene.apple(SEED_OF_REFUNDS) | {"apple.api.production": f"http://127.0.0.1:{free_port()}"})
    customers = ("--subscribers", "80", "--live", "--hours", "12", "--ahead", "1s", "--refunds", "100", "--decide-after", "24h")
    store = world.scene.simulate(SEED_OF_REFUNDS, *customers, api=True)
    try:
        yield
        world.configure(CONSUMPTION, world.scene.apple(SEED_OF_REFUNDS))
        # A process that has just started shows 0 before it has read what is open.
        world.scene.wait_ready(CONSUMPTION)
        for name in CONSUMPTION:
            wait_until("the last answer", lambda one=name: world.scene.metric(one, "perennial_consumption_open_answers") == 0, 120)
    finally:
        end(store)
        world.configure(CONSUMPTION, world.scene.apple(SEED_OF_CUSTOMERS))


@case("PerennialRefundUnanswered ticket")
def apple_refuses_the_answers(world):
    # The key of this store is right, and it does not know the purchases of the other one: Apple answers 404.
    usage, file = world.scene.root / "run/usage", world.scene.root / "run/usage-records"
    customers = ("--subscribers", "40", "--live", "--hours", "10", "--ahead", "1s", "--refunds", "100", "--usage-out", usage)
    payloads = world.scene.payloads(SEED_OF_STRANGERS, *customers)
    records = [json.loads(line)["record"] for line in usage.read_text(encoding="utf-8").splitlines()]
    file.write_text("".join(json.dumps(one) + "\n" for one in records))
    world.scene.perennial("usage", "put", file)
    world.scene.post(payloads)
    yield


# ---- The read API ---------------------------------------------------------------------------------------------------------------------


def ask_api(path="/v1/subscriptions/1"):
    connection = http.client.HTTPConnection("127.0.0.1", API, timeout=5)
    connection.request("GET", path, headers={"Authorization": "Bearer api-token-of-the-test"})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, text


@case("PerennialReadAPIRefuses page", "PerennialReadAPIBehind page")
def the_worker_stands_still(world):
    world.configure(["api"], {"api.max.behind.ms": 5000})
    world.scene.wait_ready(["api"])
    world.scene.stop("entitlements@1", "entitlements@2")
    world.post(20)
    with Repeated(ask_api, 0.1):
        yield
    world.scene.configure({"api.max.behind.ms": 600000})
    world.scene.start("entitlements@1", "entitlements@2")
    world.scene.restart("api")


@case("PerennialReadAPIKeptOut ticket")
def a_record_cannot_be_used(world):
    options = ("--property", "parse.key=true", "--property", "parse.headers=true", "--property", "null.marker=NULL")
    world.produce("entitlements", "schema:entitlement/1\t1\t{\n", *options)
    yield
    world.produce("entitlements", "schema:entitlement/1\t1\tNULL\n", *options)


# ---- Last, because they leave much behind ---------------------------------------------------------------------------------------------


@case("PerennialNotificationsStopped page")
def an_app_is_quiet(world):
    # The rest is for the cures of this case and of the next one. 50 notifications are of both apps.
    world.post_many(world.take(len(world.past) - world.taken - 100))
    yield
    world.post(50)


@case("PerennialNotificationsStopped ticket")
def an_app_is_quiet_for_a_day(world):
    # It has been busy: the case before this one has posted more than a hundred.
    yield
    world.post(50)


def part_of(payload):
    middle = payload.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))


def zone_of_a_long_day():
    """A time zone in which it is late, so that much has happened today, and not so late that today ends during the test."""
    for hours in range(-14, 13):
        # Signs of these names are the other way round.
        name = f"Etc/GMT{hours:+d}" if hours else "Etc/GMT"
        if datetime.datetime.now(zoneinfo.ZoneInfo(name)).hour == 20:
            return name
    raise Failure("no time zone has 20 o'clock")


@case("PerennialPaymentsFail ticket")
def payments_fail(world):
    zone = zoneinfo.ZoneInfo(world.scene.more["churn.zone"])
    midnight = datetime.datetime.now(zone).replace(hour=0, minute=0, second=0, microsecond=0).timestamp() * 1000
    # Of 5000 customers, two to four payments to each app fail in a day. Only those are posted whose payment succeeds or fails
    # yesterday or today, with their past, because a renewal counts only after the period before it.
    customers = ("--subscribers", "40000", "--live", "--days", "32", "--ahead", "1s")
    before, failed, renewed, wanted, failures = [], [], [], set(), {}
    with world.scene.store(SEED_OF_PAYMENTS, *customers) as files:
        for file in reversed(files):
            payload = file.read_text(encoding="utf-8").strip()
            content = part_of(payload)
            data, kind = content.get("data", {}), content["notificationType"]
            if "signedTransactionInfo" not in data:
                continue
            transaction = part_of(data["signedTransactionInfo"])
            customer = transaction["originalTransactionId"]
            # A renewal counts on the day on which its period begins, and Apple signs it up to a day before.
            at = max(content["signedDate"], transaction["purchaseDate"]) if kind == "DID_RENEW" else content["signedDate"]
            today = at >= midnight
            if kind in ("DID_RENEW", "DID_FAIL_TO_RENEW") and at >= midnight - 86400000:
                wanted.add(customer)
            if today and kind == "DID_FAIL_TO_RENEW":
                failed.append(payload)
                failures[data["bundleId"]] = failures.get(data["bundleId"], 0) + 1
            elif today and kind == "DID_RENEW":
                renewed.append(payload)
            elif not today and customer in wanted:
                before.append(payload)
    if max(failures.values(), default=0) < 20:
        raise Failure(f"too few payments fail in the store today: {failures}")
    print(f"{len(before)} notifications until yesterday, {len(failed)} failures and {len(renewed)} renewals today", flush=True)
    world.post_many(before)
    world.post_many(failed)
    yield
    world.post_many(renewed)


# ---- Running --------------------------------------------------------------------------------------------------------------------------


def matches(labels, alert):
    name, severity = alert.split()
    # A template says ticket for churn and sandbox.
    return labels["alertname"] == name and labels["severity"] == severity


def seconds_until(world, alerts, fire, within):
    """For each alert, after how many seconds it fires, or has ended."""
    begin, times = time.monotonic(), {}

    def all_seen():
        firing = world.prometheus.firing()
        for alert in alerts:
            if any(matches(labels, alert) for labels in firing) == fire:
                times.setdefault(alert, time.monotonic() - begin)
        return len(times) == len(alerts)

    try:
        wait_until(f"{'firing' if fire else 'the end'} of {' and '.join(alerts)}", all_seen, within)
    except Failure as problem:
        names = sorted(labels["alertname"] for labels in world.prometheus.firing())
        raise Failure(f"{problem}. Firing: {', '.join(names) or 'nothing'}\n{world.scene.state()}") from None
    return times


def run_case(world, alerts, fault, name):
    seconds_until(world, alerts, False, ENDS_WITHIN)
    # The times are those from when the fault is there, and from when its cure is done.
    fires, problem = {}, None
    with fault(world):
        try:
            within = FIRES_AFTER_A_DAY_WITHIN if name == an_app_is_quiet_for_a_day.__name__ else FIRES_WITHIN
            fires = seconds_until(world, alerts, True, within)
        except Failure as failure:
            problem = failure
    if problem:
        raise problem
    ends = seconds_until(world, alerts, False, ENDS_WITHIN)
    for alert in alerts:
        print(f"{alert}: fires after {fires[alert]:.1f} s, ends after {ends[alert]:.1f} s ({name.replace('_', ' ')})", flush=True)


def run_queries(world):
    """Every query of the dashboards has data."""
    with Repeated(lambda: work(world), 1):
        # The figures of the business are computed every 15 s, and a rate needs two samples of what exists since then.
        time.sleep(20)
        return have_data(world)


def work(world):
    world.post(1)
    for path in ("subscriptions/1", "accounts/1", "metrics?from=2020-01-01&to=2020-01-02", "refunds/1"):
        ask_api(f"/v1/{path}")


def have_data(world):
    command = [sys.executable, DEPLOY / "grafana/check.py", "queries", "__rate_interval=30s"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    empty = []
    for line in lines:
        text, _, where = line.rpartition(" # ")
        if not world.prometheus.query(text):
            empty.append(f"{where}: {text}")
    for one in empty:
        print(f"no data: {one}", flush=True)
    print(f"{len(lines)} queries, {len(empty)} without data", flush=True)
    return len(lines), empty


def main(arguments):
    end_on_signals()
    if shutil.which("prometheus") is None:
        raise Failure("prometheus is missing (Debian: the package prometheus)")
    wanted = rules()
    have = [alert for alerts, _, _ in CASES for alert in alerts]
    for alert in set(have) - set(wanted):
        raise Failure(f"alerts.yml has no {alert}")
    for alert in set(wanted) - set(have):
        raise Failure(f"no case makes {alert} fire")
    names = {alert.split()[0] for alert in wanted}
    for one in arguments:
        if one != "queries" and one not in names:
            raise Failure(f"there is no alert {one}")
    fired, failed, queries = 0, [], 0
    if not arguments or "queries" in arguments:
        # Two panels have no data without OCSP. The certificates of the simulated store name no responder, so nobody is asked.
        with installation({"verify.ocsp": "soft"}) as (scene, world):
            queries, empty = run_queries(world)
            failed += ["queries"] if empty else []
    chosen = [case for case in CASES if not arguments or any(alert.split()[0] in arguments for alert in case[0])]
    if chosen:
        alerts_fired, alerts_failed = run_cases(chosen)
        fired += alerts_fired
        failed += alerts_failed
    if failed:
        print(f"failed: {', '.join(failed)}")
    print(f"alerts: {fired} of {len(wanted)} alerts, {queries} queries")
    return 1 if failed else 0


@contextlib.contextmanager
def installation(settings):
    """A scene whose customers have begun to buy."""
    common = {"ingest.trusted.proxies": "127.0.0.1", "churn.zone": zone_of_a_long_day()}
    with Scene(settings=common | settings) as scene:
        world = World(scene)
        customers = ("--subscribers", "60", "--live", "--hours", "3", "--ahead", "10s", "--rate", "50")
        customers += ("--refunds", "30", "--decide-after", "24h")
        scene.simulate(SEED_OF_CUSTOMERS, *customers, api=True)
        wait_until("notifications", lambda: scene.metric("ingest", "perennial_ingest_requests_total", 'outcome="accepted"') > 20, 60)
        yield scene, world


def run_cases(cases):
    fired, failed = 0, []
    with installation({}) as (scene, world):
        for alerts, fault, name in cases:
            try:
                run_case(world, alerts, fault, name)
                fired += len(alerts)
                scene.wait_ready()
                world.wait_for_workers()
            except (Failure, OSError, subprocess.SubprocessError) as error:
                print(f"FAILED {' and '.join(alerts)} ({name}): {error}", flush=True)
                failed += alerts
                world.repair()
    return fired, failed


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failure as failure:
        sys.exit(f"alerts: {failure}")
    except KeyboardInterrupt:
        sys.exit("alerts: interrupted")
