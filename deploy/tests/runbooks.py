#!/usr/bin/env python3
"""Runs the commands of the runbooks on a whole installation: `make deploy-test`, or runbooks.py [PAGE...].

A command is a block ```sh of a page in docs/operate/runbooks. Each page has one bash (set -euo pipefail), so variables and functions
stay from block to block. A block has 180 s. A line `<!-- not run: REASON -->` before a block says why it cannot run here; at most one
command in ten may have such a line. A comment `# exit code N: ...` behind a command allows that exit code as well.

Pages about alerts run on a healthy installation; alerts.py runs the cures of some of them after a real fault. What a page about an
operation needs beside it, is in PAGES: what happened before the page begins, and what happens where the page has a command that does not
run here.

PAGE is the name of a file, such as upgrade. Without one, all pages run. What it needs: scene.py.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from scene import (  # noqa: E402
    PARTITIONS,
    PORTS,
    RUNNING,
    ROOT,
    SEEDS,
    Failure,
    Scene,
    child,
    end_on_signals,
    get,
    unit_of,
    wait_until,
)

FOLDER = ROOT / "docs/operate/runbooks"
BLOCK_WITHIN = 180
# At most one command in this many is not run.
NOT_RUN = 10

# Customers of the simulated store. Some have events while the pages run.
CUSTOMERS = ("--subscribers", "60", "--live", "--hours", "3", "--ahead", "2h", "--rate", "20", "--refunds", "30")


class Block:
    def __init__(self, number, line, text, reason):
        self.number, self.line, self.text, self.reason = number, line, text, reason


def blocks_of(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    blocks, inside = [], None
    for number, line in enumerate(lines, 1):
        if inside is None:
            if line.strip() == "```sh":
                inside = (number, len(line) - len(line.lstrip()), [])
        elif line.strip() == "```":
            start, indent, text = inside
            before = re.fullmatch(r"\s*<!-- not run: (.+) -->", lines[start - 2])
            # The block's own indentation, so that the end of a here-document stands at the beginning of its line.
            wrong = [one for one in text if one.strip() and one[:indent].strip()]
            if wrong:
                raise Failure(f"{page.name}:{start}: a line has less indentation than its block: {wrong[0]}")
            blocks.append(Block(len(blocks) + 1, start, "".join(one[indent:] + "\n" for one in text), before and before.group(1)))
            inside = None
        else:
            inside[2].append(line)
    if inside is not None:
        raise Failure(f"{page.name}:{inside[0]}: the block has no end")
    return blocks


def allow_exit_codes(text):
    return re.sub(r"^( *)(\S.*?) +(# exit code (\d+)\b.*)$", r"\1{ \2; } || test $? = \4 \3", text, flags=re.MULTILINE)


# ---- What the pages need --------------------------------------------------------------------------------------------------------------


class Page:
    """A page without needs."""

    brokers = 1
    # Changes to the text of a page, because numbers of the page are too large for this machine.
    replace = {}

    def before(self, scene):
        pass

    def instead(self, scene, command):
        """Where the page has this command, which is not run."""


class Installs(Page):
    def before(self, scene):
        scene.package()

    def instead(self, scene, command):
        if "apt-get install" not in command:
            return
        # The version of the program is the same. That the processes stand still makes the page restart each of them, as if they ran
        # another version. The file of the program is the one of the package from now on.
        scene.stop(*RUNNING)
        program = scene.root / "usr/bin/perennial"
        new = program.with_suffix(".new")
        shutil.copy(scene.program, new)
        new.rename(program)
        # The read API runs the new version already, and may still build its copy: the page must wait for it all the same.
        scene.systemctl("start", unit_of("api"))
        wait_until("metrics of the read API", lambda: get(PORTS["api"], "/metrics")[0] == 200, 60)


class Grows(Page):
    replace = {"partitions=24": f"partitions={2 * PARTITIONS}"}


class LosesBroker(Page):
    brokers = 3

    def before(self, scene):
        scene.kafka.processes[2].kill()
        scene.kafka.processes[2].wait()
        live = ",".join(scene.servers.split(",")[:2])
        scene.environment["KAFKA"] = live

        # Nobody begins with a page in the first seconds, in which Kafka itself still counts on the broker.
        def noticed():
            command = ("kafka-topics.sh", "--bootstrap-server", live, "--describe")
            missing = scene.kafka.tool(*command, "--under-replicated-partitions")
            return missing.strip() and not scene.kafka.tool(*command, "--unavailable-partitions").strip()

        wait_until("other brokers lead", noticed, 60, every=1)

    def instead(self, scene, command):
        scene.kafka.start(2)
        wait_until("an answer of the third broker", lambda: f":{scene.kafka.ports[2][0]} (id: 3" in self.versions(scene), 60)

    @staticmethod
    def versions(scene):
        return scene.kafka.run("kafka-broker-api-versions.sh", "--bootstrap-server", f"127.0.0.1:{scene.kafka.ports[2][0]}").stdout


class Restores(Page):
    """Kafka is lost, and there is a copy of what the page names."""

    topics = ("notifications", "signed", "rejected", "usage", "consumption", "consumption-attempts")

    def copy(self, scene, what):
        names = [f"appstore.{environment}.{topic}" for environment in ("production", "sandbox") for topic in self.topics]
        command = ["java", "-Xmx512m", "-cp", f"{scene.kafka_home}/libs/*", pathlib.Path(__file__).with_name("Copy.java")]
        command += [what, scene.servers, scene.root / "run/copy", *names]
        run = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=BLOCK_WITHIN, check=False)
        if run.returncode != 0:
            raise Failure(f"Copy.java {what}: {run.stdout}{run.stderr}")
        return run.stdout.strip()

    def before(self, scene):
        scene.stop(*RUNNING)
        self.saved = self.copy(scene, "save")
        if self.saved.startswith("0 "):
            raise Failure("there was nothing to save")
        scene.kafka.close()
        scene.kafka.start_all()

    def instead(self, scene, command):
        restored = self.copy(scene, "restore")
        if restored != self.saved:
            raise Failure(f"{self.saved} were saved, and {restored} restored")


class Rotates(Page):
    def before(self, scene):
        scene.make_certificate("new", 90)
        for name in ("new.pem", "new.key"):
            scene.put(f"/etc/perennial/{name}", (scene.root / "tls" / name).read_text())
        scene.put("/etc/perennial/SubscriptionKey_ABCDEFGHIJ.p8", (scene.root / "store/1.p8").read_text())


class Fills(Page):
    def before(self, scene):
        # Apple reaches ingest again.
        answers = scene.post(scene.payloads(SEEDS[2], "--subscribers", "3", "--days", "30"))
        if set(answers) != {200}:
            raise Failure(f"ingest has answered {answers}")

    def instead(self, scene, command):
        payloads = scene.payloads(SEEDS[1], "--subscribers", "5", "--days", "60")
        scene.path("/var/tmp/missed").write_text("".join(f"{one}\n" for one in payloads), encoding="utf-8")


PAGES = {
    "upgrade": Installs(),
    "roll-back": Installs(),
    "grow-partitions": Grows(),
    "lose-a-broker": LosesBroker(),
    "restore-from-nothing": Restores(),
    "rotate-certificates-and-keys": Rotates(),
    "fill-a-gap": Fills(),
}
# They leave another log or another Kafka behind, so they come last.
LAST = ["restore-from-nothing", "grow-partitions", "lose-a-broker"]


# ---- Running --------------------------------------------------------------------------------------------------------------------------

# Runs the files whose names come through one pipe, and answers through another.
DRIVER = r"""
set -Eeuo pipefail
trap 'printf "failed line %s: %s\n" "$LINENO" "$BASH_COMMAND" >&2' ERR
while IFS= read -r block_of_test <&FROM; do
    source "$block_of_test"
    echo done >&TO
done
"""


class Shell:
    """The bash of a page."""

    def __init__(self, scene, name):
        self.scene = scene
        self.folder = scene.root / "run" / f"page-{name}"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.log = self.folder / "output"
        ours, self.blocks = os.pipe()
        self.answers, theirs = os.pipe()
        script = DRIVER.replace("FROM", str(ours)).replace("TO", str(theirs))
        with self.log.open("wb") as log:
            self.process = child(
                ["bash", "-c", script], env=scene.environment, cwd=scene.root, stdout=log, stderr=log, pass_fds=(ours, theirs)
            )
        os.close(ours)
        os.close(theirs)
        os.set_blocking(self.answers, False)

    def run(self, number, text):
        """None, or what went wrong."""
        file = self.folder / f"{number}.sh"
        file.write_text(text, encoding="utf-8")
        self.begin = self.log.stat().st_size
        os.write(self.blocks, f"{file}\n".encode())
        stop = time.monotonic() + BLOCK_WITHIN
        while time.monotonic() < stop:
            try:
                if os.read(self.answers, 100):
                    return None
            except BlockingIOError:
                pass
            if self.process.poll() is not None:
                return f"ended with {self.process.returncode}"
            time.sleep(0.05)
        return f"took longer than {BLOCK_WITHIN} s"

    def output(self):
        with self.log.open("rb") as file:
            file.seek(self.begin)
            return file.read().decode(errors="replace")

    def close(self):
        # What the page has started in the background is in the same group, and the group has the id of its bash.
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.blocks)
        os.close(self.answers)


def run_page(scene, name, counts):
    """Whether all its commands have done what they should."""
    needs = PAGES.get(name, Page())
    blocks = blocks_of(FOLDER / f"{name}.md")
    for old in needs.replace:
        if not any(old in block.text for block in blocks):
            raise Failure(f"{name}.md has no {old} any more: correct PAGES")
    needs.before(scene)
    shell = Shell(scene, name)
    try:
        for block in blocks:
            where = f"{name} {block.number} of {len(blocks)} (line {block.line})"
            if block.reason:
                counts["not run"] += 1
                print(f"{where}: not run: {block.reason}", flush=True)
                needs.instead(scene, block.text)
                continue
            text = block.text
            for old, new in needs.replace.items():
                text = text.replace(old, new)
            begin = time.monotonic()
            fault = shell.run(block.number, scene.here(allow_exit_codes(text)))
            print(f"{where}: {time.monotonic() - begin:.1f} s", flush=True)
            if fault:
                print(f"\n{where}: {fault}\n\n{block.text}\n--- its output\n{shell.output()[-6000:]}\n--- the processes\n{scene.state()}\n")
                return False
            counts["run"] += 1
        # At the end of every page all processes run.
        scene.wait_ready()
        return True
    finally:
        shell.close()


class Installation:
    """A scene, and how it was before the first page."""

    def __init__(self, brokers):
        self.scene = Scene(brokers)

    def __enter__(self):
        self.scene.__enter__()
        self.files = self.scene.root / "run/etc"
        shutil.copytree(self.scene.path("/etc/perennial"), self.files)
        self.scene.simulate(SEEDS[0], *CUSTOMERS, api=True)
        wait_until("a notification", lambda: self.scene.metric("ingest", "perennial_ingest_requests_total", 'outcome="accepted"') > 20, 60)
        return self

    def __exit__(self, *error):
        self.scene.__exit__(*error)

    def heal(self):
        """The settings as they were, and all processes running."""
        scene = self.scene
        etc = scene.path("/etc/perennial")

        def texts(folder):
            return {file.name: file.read_bytes() for file in folder.iterdir()}

        scene.stop("consumption@3")
        if texts(etc) != texts(self.files):
            scene.stop(*RUNNING)
            shutil.rmtree(etc)
            shutil.copytree(self.files, etc)
        scene.start(*RUNNING)
        scene.wait_ready()


def main(names):
    end_on_signals()
    every = sorted(file.stem for file in FOLDER.glob("*.md") if file.stem != "README")
    wrong = [name for name in names if name not in every]
    if wrong:
        raise Failure(f"there is no page {wrong[0]} in {FOLDER}")
    blocks = [block for name in every for block in blocks_of(FOLDER / f"{name}.md")]
    left_out = sum(block.reason is not None for block in blocks)
    print(f"{len(every)} pages, {len(blocks)} commands, {left_out} of them marked as not run", flush=True)
    if left_out * NOT_RUN > len(blocks):
        raise Failure(f"more than one command in {NOT_RUN} is marked as not run")
    chosen = names or [name for name in every if name not in LAST] + LAST
    counts, failed, installation = {"run": 0, "not run": 0}, [], None
    try:
        for name in chosen:
            brokers = PAGES.get(name, Page()).brokers
            fresh = installation is None or name in LAST or installation.scene.brokers != brokers
            if fresh and installation is not None:
                installation.__exit__(None, None, None)
                installation = None
            try:
                if fresh:
                    installation = Installation(brokers)
                    try:
                        installation.__enter__()
                    except BaseException:
                        installation.scene.close()
                        installation = None
                        raise
                else:
                    installation.heal()
                good = run_page(installation.scene, name, counts)
            except (Failure, OSError, subprocess.SubprocessError) as error:
                print(f"\n{name}: {error}\n", flush=True)
                good = False
            if not good:
                failed.append(name)
                # The next page begins with an installation that nothing has happened to.
                if installation is not None:
                    installation.__exit__(None, None, None)
                    installation = None
    finally:
        if installation is not None:
            installation.__exit__(None, None, None)
    if failed:
        print(f"failed: {' '.join(failed)}")
    print(f"runbooks: {counts['run']} commands of {len(chosen)} pages, {counts['not run']} not run, {len(failed)} pages failed")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main([pathlib.Path(name).stem for name in sys.argv[1:]]))
    except Failure as failure:
        sys.exit(f"runbooks: {failure}")
    except KeyboardInterrupt:
        sys.exit("runbooks: interrupted")
