#!/usr/bin/env python3
"""Checks the dashboards without Grafana and Prometheus. It ends with 1 and says what is wrong, or with 0.

check.py                       checks everything. It needs promtool on the PATH.
check.py queries [NAME=VALUE]  prints every query, one in a line, with the variables replaced. A line is a whole query; the
                               comment at its end names the panel, and says "needs:" if the data exist only with a setting.
                               NAME=VALUE is a variable, such as environment=sandbox or __rate_interval=15s.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# generate.py is read as a module, and shall leave no folder behind.
sys.dont_write_bytecode = True
import generate  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
METRICS = ROOT / "docs/reference/metrics.md"
PAGE = ROOT / "docs/how-to/dashboards.md"
RULES = ROOT / "deploy/prometheus"

KINDS = {"timeseries", "stat", "table", "bargauge", "heatmap", "state-timeline"}

# What Prometheus adds to every series.
OF_PROMETHEUS = {"instance", "job"}
# Series that Prometheus itself makes for every process that it scrapes.
MADE_BY_PROMETHEUS = {"up": ("gauge", set())}

# Variables that Grafana defines. The value is for `queries`.
BUILT_IN = {"__rate_interval": "1m", "__interval": "15s", "__range": "1h"}
VARIABLES = {"environment": "production", "instance": ".+", "app": ".+", "group": ".*", "datasource": "prometheus"}

problems = []


def problem(where, words):
    problems.append(f"{where}: {words}")


# What docs/reference/metrics.md says ----------------------------------------------------------------------------------------


def known_metrics():
    """Type and labels of each metric, by name."""
    found = dict(MADE_BY_PROMETHEUS)
    row = re.compile(r"^\| `([a-z_]+)` \| (counter|gauge|histogram) \|([^|]*)\|", re.MULTILINE)
    for name, kind, labels in row.findall(METRICS.read_text(encoding="utf-8")):
        found[name] = (kind, set(re.findall(r"`([a-z_]+)`", labels)) | {"environment"})
    return found


# Reading a query ------------------------------------------------------------------------------------------------------------

TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*') | (?P<range>\[[^\]]*\]) | (?P<word>[a-zA-Z_:][a-zA-Z0-9_:]*)
      | (?P<number>[0-9][0-9a-zA-Z.]*) | (?P<mark>=~|!~|!=|==|<=|>=|[-+*/%^(){},=<>]) | (?P<space>\s+)""",
    re.VERBOSE,
)
LABEL_LISTS = {"by", "without", "on", "ignoring", "group_left", "group_right"}
KEYWORDS = LABEL_LISTS | {"and", "or", "unless", "bool", "offset"}


class Query:
    """The metrics and labels of a query. Whether it is one is for promtool to say."""

    def __init__(self, text):
        # Each metric: name, labels in its braces, whether a range follows.
        self.metrics = []
        # Labels of `by (...)` and the like.
        self.labels = set()
        tokens = [match for match in TOKEN.finditer(text) if match.lastgroup != "space"]
        covered = sum(len(match.group()) for match in TOKEN.finditer(text))
        if covered != len(text):
            raise ValueError("it has characters that no query has")
        place = 0
        while place < len(tokens):
            word = tokens[place].group() if tokens[place].lastgroup == "word" else None
            place += 1
            following = tokens[place].group() if place < len(tokens) else ""
            if word in LABEL_LISTS and following == "(":
                while tokens[place].group() != ")":
                    if tokens[place].lastgroup == "word":
                        self.labels.add(tokens[place].group())
                    place += 1
            elif word and word not in KEYWORDS and following not in ("(", "by", "without"):
                matched = set()
                if following == "{":
                    while tokens[place].group() != "}":
                        if tokens[place].lastgroup == "word":
                            matched.add(tokens[place].group())
                        place += 1
                    place += 1
                has_range = place < len(tokens) and tokens[place].lastgroup == "range"
                self.metrics.append((word, matched, has_range))


def base(name, known):
    """The metric in the reference that a series belongs to, and the labels that are added to it."""
    for ending, added in (("_bucket", {"le"}), ("_sum", set()), ("_count", set())):
        whole = name.removesuffix(ending)
        if whole != name and known.get(whole, ("",))[0] == "histogram":
            return whole, added
    return name, set()


def check_query(where, text, legend, known, used):
    query = Query(text)
    if not query.metrics:
        problem(where, f"the query has no metric: {text}")
    for number in re.findall(r'\ble="(\d+)"', text):
        problem(where, f'from Prometheus 3 on, le="{number}" is stored as le="{number}.0": write le=~"{number}(\\\\.0)?"')
    all_labels = set(OF_PROMETHEUS)
    for name, matched, has_range in query.metrics:
        whole, added = base(name, known)
        if whole not in known:
            problem(where, f"docs/reference/metrics.md has no {name}")
            continue
        used.add(whole)
        kind, labels = known[whole]
        if kind == "histogram" and whole == name:
            problem(where, f"{name} is a histogram: use its _bucket, _sum or _count")
        if kind != "gauge" and not has_range:
            problem(where, f"{name} only ever grows: use rate() or increase()")
        labels = labels | OF_PROMETHEUS | added
        # `up` has no environment. A selector of "" still fits.
        for label in sorted(matched - labels - ({"environment"} if name in MADE_BY_PROMETHEUS else set())):
            problem(where, f"{name} has no label {label}")
        all_labels |= labels
    for label in sorted(query.labels - all_labels):
        problem(where, f"no metric of the query has the label {label}")
    for label in sorted(set(re.findall(r"{{\s*(\w+)\s*}}", legend)) - all_labels):
        problem(where, f"the legend names {label}, which no metric of the query has")


def check_business(where, text, known):
    """All replicas of the api export the same values: one of them is taken before anything is added up."""
    for before, name in re.findall(r"(.*?)\b(perennial_business_[a-z_]+)", text):
        labels = known.get(name, ("", set()))[1] - {"environment"}
        taken = re.search(r"\b(?:max|min) by \(([^)]*)\) \($", before)
        if taken is None:
            problem(where, f"{name} is the same in every replica of the api: take max by (...) or min by (...) of it")
        elif {label.strip() for label in taken.group(1).split(",")} - {"environment"} != labels:
            problem(where, f"max by (...) of {name} must keep exactly its labels: {', '.join(sorted(labels))}")


# Dashboards -----------------------------------------------------------------------------------------------------------------


def queries_of(dashboard):
    """Every query of the dashboard: where it stands, its text, its legend, the panel."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield f"{dashboard['title']}: {panel['title']}", target["expr"], target["legendFormat"], panel
    for one in dashboard["annotations"]["list"]:
        if "expr" in one:
            yield f"{dashboard['title']}: {one['name']}", one["expr"], one["titleFormat"] + one["textFormat"], {}


def sources_in(part):
    """Every data source that is named anywhere."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key == "datasource":
                yield value
            else:
                yield from sources_in(value)
    elif isinstance(part, list):
        for value in part:
            yield from sources_in(value)


def cells(panel):
    place = panel["gridPos"]
    return {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}


def check_structure(name, dashboard):
    panels = dashboard["panels"]
    numbers = [panel["id"] for panel in panels]
    if len(set(numbers)) != len(numbers):
        problem(name, "two panels have one id")
    taken = {}
    for panel in panels:
        where = f"{dashboard['title']}: {panel['title']}"
        for cell in cells(panel):
            if cell[0] >= generate.GRID:
                problem(where, "it is beyond the right edge")
                break
            if cell in taken:
                problem(where, f"it lies on {taken[cell]}")
                break
        taken |= dict.fromkeys(cells(panel), panel["title"])
        if panel["type"] == "row":
            if panel["title"] not in PAGE.read_text(encoding="utf-8"):
                problem(where, "docs/how-to/dashboards.md does not say what this row answers")
            continue
        check_panel(where, panel)
    for source in sources_in(dashboard):
        if source not in (generate.SOURCE, generate.OF_GRAFANA):
            problem(name, f"something reads the data source {source}, and not ${{datasource}}")
    variables = {one["name"] for one in dashboard["templating"]["list"]}
    text = json.dumps([panels, dashboard["annotations"], dashboard["templating"]["list"]])
    for used in set(re.findall(r"\$\{?(\w+)", text)) - {"__all"}:
        if used not in variables and used not in BUILT_IN:
            problem(name, f"${used} is no variable of this dashboard")
    for variable in variables:
        if not re.search(rf"\$\{{?{variable}\b", text):
            problem(name, f"nothing uses the variable {variable}")


def check_panel(where, panel):
    if panel["type"] not in KINDS:
        problem(where, f"a panel of the type {panel['type']} is not wanted here")
    description = panel.get("description", "")
    for part in ("Unit: ", "Healthy: ", "Where to go: docs/"):
        if part not in description:
            problem(where, f"the description lacks {part!r}")
    defaults = panel["fieldConfig"]["defaults"]
    if defaults.get("unit") not in generate.UNITS:
        problem(where, f"it has no unit, or one that generate.py does not know: {defaults.get('unit')}")
    limits = [step["value"] for step in defaults["thresholds"]["steps"] if step["value"] is not None]
    is_said = re.search(r"\(.+\)$", panel["title"]) is not None
    if panel["type"] == "stat":
        is_said = panel["targets"][0]["legendFormat"] != "__auto" and panel["options"]["textMode"] == "value_and_name"
    if limits and not is_said:
        problem(where, "its colours have a limit that no words say")
    # About what a screen of 1600 points shows of it.
    if len(panel["title"]) > 8 * panel["gridPos"]["w"]:
        problem(where, "its title is longer than the panel is wide")
    names = [target["refId"] for target in panel["targets"]]
    if not names or len(set(names)) != len(names):
        problem(where, "it has no query, or two of one name")


def check_variables(dashboard, known, used):
    for one in dashboard["templating"]["list"]:
        if one["type"] != "query":
            continue
        where = f"{dashboard['title']}: variable {one['name']}"
        match = re.fullmatch(r"label_values\((.+), (\w+)\)", one["definition"])
        if match is None:
            problem(where, f"expected label_values(METRIC, LABEL), not {one['definition']}")
            continue
        check_query(where, match.group(1), f"{{{{{match.group(2)}}}}}", known, used)


def replaced(text, values):
    return re.sub(r"\$\{?(\w+)\}?", lambda match: values[match.group(1)], text)


def check_syntax(queries):
    """promtool reads rules, and a rule is a query with a name."""
    promtool = shutil.which("promtool")
    if promtool is None:
        problem("promtool", "it is not on the PATH. Debian has it in the package prometheus")
        return
    rules = [{"record": f"query:{number}", "expr": text} for number, text in enumerate(queries)]
    # Prometheus reads YAML, of which JSON is a part.
    groups = {"groups": [{"name": "dashboards", "rules": rules}]}
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "rules.yaml"
        file.write_text(json.dumps(groups), encoding="utf-8")
        run = subprocess.run([promtool, "check", "rules", str(file)], capture_output=True, text=True, check=False)
        if run.returncode != 0:
            problem("promtool", (run.stdout + run.stderr).strip())
        elif f"{len(queries)} rules found" not in run.stdout:
            problem("promtool", f"expected {len(queries)} queries: {run.stdout.strip()}")


def check_pages(dashboards):
    """Every page that a panel names exists, and every runbook of an alert is named by a panel."""
    said = set()
    for dashboard in dashboards:
        for panel in dashboard["panels"]:
            said |= set(re.findall(r"docs/[a-z/-]+\.md", panel.get("description", "")))
    for page in sorted(said):
        if not (ROOT / page).is_file():
            problem("panels", f"they name {page}, which does not exist")
    of_alerts = set()
    for file in sorted(RULES.glob("**/*.y*ml")):
        of_alerts |= set(re.findall(r"docs/operate/runbooks/[a-z-]+\.md", file.read_text(encoding="utf-8")))
    for page in sorted(of_alerts - said):
        problem("alerts", f"one has {page}, and no panel names it")
    return len(of_alerts)


def load():
    return {name: json.loads(generate.path(name).read_text(encoding="utf-8")) for name in generate.NAMES}


def check():
    texts = generate.generate()
    for name, text in texts.items():
        if generate.path(name).read_text(encoding="utf-8") != text:
            problem(f"{name}.json", f"it is not what generate.py makes of {name}.toml. Run deploy/grafana/generate.py")
    dashboards = load()
    identities = [one["uid"] for one in dashboards.values()]
    if len(set(identities)) != len(identities):
        problem("dashboards", "two have one uid")
    known, used, queries = known_metrics(), set(), []
    values = VARIABLES | BUILT_IN
    for name, dashboard in dashboards.items():
        check_structure(name, dashboard)
        check_variables(dashboard, known, used)
        for where, text, legend, _ in queries_of(dashboard):
            try:
                check_query(where, text, legend, known, used)
                check_business(where, text, known)
                queries.append(replaced(text, values))
            except (ValueError, IndexError, KeyError) as error:
                problem(where, f"the query cannot be read ({error}): {text}")
    check_syntax(queries)
    alerts = check_pages(dashboards.values())
    for line in problems:
        print(line, file=sys.stderr)
    panels = sum(panel["type"] != "row" for one in dashboards.values() for panel in one["panels"])
    print(
        f"{len(dashboards)} dashboards, {panels} panels, {len(queries)} queries, {len(used)} of {len(known)} metrics, "
        f"{alerts} runbooks of alerts: {len(problems)} problems"
    )
    return 1 if problems else 0


def print_queries(arguments):
    values = VARIABLES | BUILT_IN
    for argument in arguments:
        name, _, value = argument.partition("=")
        if name not in values:
            sys.exit(f"check.py: there is no variable {name}. There are: {', '.join(sorted(values))}")
        values[name] = value
    for dashboard in load().values():
        for where, text, _, panel in queries_of(dashboard):
            needs = re.search(r"No data without (.+)\.\n", panel.get("description", ""))
            print(f"{replaced(text, values)} # {where}" + (f" (needs: {needs.group(1)})" if needs else ""))
    return 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            sys.exit(check())
        case ["queries", *arguments]:
            sys.exit(print_queries(arguments))
        case _:
            sys.exit(__doc__)
