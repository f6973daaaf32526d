#!/usr/bin/env python3
"""Writes dashboards/*.json from operations.toml and business.toml. Change those files, run this, and commit both.

A panel in Grafana's JSON has about seventy lines, and ten of them differ from those of another panel. The TOML files have
the ten. What belongs to all panels of a kind is here once. check.py shows that JSON and TOML agree.
"""

import json
import pathlib
import tomllib

HERE = pathlib.Path(__file__).parent
NAMES = ["operations", "business"]

# The schema of Grafana 11.0. Later versions read it, and raise it when somebody saves.
SCHEMA_VERSION = 39

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
# Where Grafana keeps what people write into a chart.
OF_GRAFANA = {"type": "grafana", "uid": "-- Grafana --"}

# The units that panels may have, by Grafana's id, and how descriptions call them.
UNITS = {
    "none": "a number",
    "short": "a number",
    "s": "seconds",
    "bytes": "bytes",
    "reqps": "requests a second",
    "cps": "a second",
    "percentunit": "percent",
}

# The palette of Okabe and Ito, which people with any kind of colour vision can tell apart. Yellow and black are left out:
# one cannot be seen on the light theme, the other not on the dark one.
PALETTE = ["#56B4E9", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#0072B2", "#999999"]
FINE, BEYOND = "#0072B2", "#D55E00"

# The n-th series has the n-th of these as well as the n-th colour.
LINES = [{"fill": "solid"}, {"dash": [12, 6], "fill": "dash"}, {"dash": [2, 6], "fill": "dot"}]

# The page of an alert, by its name in `see`.
RUNBOOK = "docs/operate/runbooks/perennial-{}.md"

# In cells of the grid, which is 24 cells wide.
WIDTHS = {"stat": 4}
GRID = 24


def quantity(number):
    """A number as JSON of Grafana has it: whole numbers without a point."""
    return int(number) if number == int(number) else number


def thresholds(panel):
    steps = [{"color": FINE, "value": None}]
    if "limit" in panel:
        steps.append({"color": BEYOND, "value": quantity(panel["limit"])})
        if panel.get("below"):
            steps[0]["color"], steps[1]["color"] = BEYOND, FINE
    return {"mode": "absolute", "steps": steps}


def mappings(panel):
    """`words` of a panel: what is written instead of a number, for people who do not see the colour."""
    words = panel.get("words")
    if not words:
        return []
    colours = {value: FINE if value == panel["fine"] else BEYOND for value in words}
    options = {
        value: {"color": colours[value], "index": index, "text": text} for index, (value, text) in enumerate(words.items())
    }
    return [{"options": options, "type": "value"}]


def overrides(panel):
    """Colour and line of each series whose name is known. Others get Grafana's colours, and a table as their legend."""
    found = []
    for index, name in enumerate(panel.get("series", [])):
        properties = [{"id": "color", "value": {"fixedColor": PALETTE[index % len(PALETTE)], "mode": "fixed"}}]
        if not panel.get("stack"):
            properties.append({"id": "custom.lineStyle", "value": LINES[index % len(LINES)]})
        found.append({"matcher": {"id": "byName", "options": name}, "properties": properties})
    for name, unit in panel.get("units", {}).items():
        properties = [{"id": "unit", "value": unit}]
        found.append({"matcher": {"id": "byName", "options": name}, "properties": properties})
    return found


HIDE_FROM = {"legend": False, "tooltip": False, "viz": False}


def custom(panel):
    kind = panel["kind"]
    if kind == "timeseries":
        stack = panel.get("stack", False)
        return {
            "axisBorderShow": False,
            "axisCenteredZero": False,
            "axisColorMode": "text",
            "axisLabel": "",
            "axisPlacement": "auto",
            "barAlignment": 0,
            "drawStyle": "line",
            "fillOpacity": 30 if stack else 0,
            "gradientMode": "none",
            "hideFrom": HIDE_FROM,
            "insertNulls": False,
            "lineInterpolation": "stepAfter" if panel.get("steps") else "linear",
            "lineWidth": 2,
            "pointSize": 5,
            "scaleDistribution": {"type": "linear"},
            "showPoints": "auto",
            "spanNulls": False,
            "stacking": {"group": "A", "mode": "normal" if stack else "none"},
            "thresholdsStyle": {"mode": "dashed" if "limit" in panel else "off"},
        }
    if kind == "state-timeline":
        return {"fillOpacity": 80, "hideFrom": HIDE_FROM, "insertNulls": False, "lineWidth": 0, "spanNulls": False}
    if kind == "table":
        return {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False}
    if kind == "heatmap":
        return {"hideFrom": HIDE_FROM, "scaleDistribution": {"type": "linear"}}
    return None


LAST = {"calcs": ["lastNotNull"], "fields": "", "values": False}
LIST = {"displayMode": "list", "placement": "bottom", "showLegend": True}


def options(panel):
    kind = panel["kind"]
    if kind == "timeseries":
        legend = {"calcs": ["lastNotNull", "max"], "displayMode": "table", "placement": "bottom", "showLegend": True}
        if panel.get("many"):
            # Beside a narrow chart it would take the place of the chart.
            place = "right" if panel.get("width", 8) >= 12 else "bottom"
            legend |= {"placement": place, "sortBy": "Max", "sortDesc": True}
        return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}
    if kind == "stat":
        return {
            "colorMode": "background_solid" if "limit" in panel or "words" in panel else "none",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "percentChangeColorMode": "standard",
            "reduceOptions": LAST,
            "showPercentChange": False,
            "textMode": "value_and_name" if "limit" in panel or "legend" in panel else "value",
            "wideLayout": False,
        }
    if kind == "bargauge":
        return {
            "displayMode": "basic",
            "legend": LIST | {"calcs": [], "showLegend": False},
            "maxVizHeight": 300,
            "minVizHeight": 16,
            "minVizWidth": 8,
            "namePlacement": "auto",
            "orientation": "horizontal",
            "reduceOptions": LAST,
            "showUnfilled": True,
            "sizing": "auto",
            "valueMode": "color",
        }
    if kind == "state-timeline":
        return {
            "alignValue": "left",
            "legend": LIST,
            "mergeValues": True,
            "rowHeight": 0.9,
            "showValue": "auto",
            "tooltip": {"mode": "single", "sort": "none"},
        }
    if kind == "table":
        # The column with the value has the name "Value", or "Value #A" where there are several queries.
        column = "Value" if "query" in panel else "Value #A"
        sort = {"desc": True, "displayName": panel.get("columns", {}).get(column, column)}
        footer = {"countRows": False, "fields": "", "reducer": ["sum"], "show": False}
        return {"cellHeight": "sm", "footer": footer, "showHeader": True, "sortBy": [sort]}
    if kind == "heatmap":
        return {
            "calculate": False,
            "cellGap": 1,
            "color": {
                "exponent": 0.5,
                "fill": "dark-orange",
                "mode": "scheme",
                "reverse": False,
                "scale": "exponential",
                # One hue from light to dark: readable without seeing colours.
                "scheme": "Blues",
                "steps": 64,
            },
            "exemplars": {"color": "rgba(255,0,255,0.7)"},
            "filterValues": {"le": 1e-9},
            "legend": {"show": True},
            "rowsFrame": {"layout": "auto"},
            "tooltip": {"mode": "single", "showColorScale": True, "yHistogram": False},
            "yAxis": {"axisPlacement": "left", "reverse": False, "unit": panel["unit"]},
        }
    raise SystemExit(f"generate.py: {panel['title']}: there is no kind {kind}")


def targets(panel, selectors):
    queries = panel.get("queries") or [{"query": panel["query"], "legend": panel.get("legend", "")}]
    made = []
    for letter, one in zip("ABCDEFGHIJ", queries, strict=False):
        expression = one["query"]
        # The longest first: one short form may begin with another.
        for short in sorted(selectors, key=len, reverse=True):
            expression = expression.replace(short, selectors[short])
        # A number, a bar and a table show now; the others show how it came about.
        is_instant = panel["kind"] in ("stat", "bargauge", "table")
        made.append(
            {
                "datasource": SOURCE,
                "editorMode": "code",
                "expr": " ".join(expression.split()),
                "format": {"table": "table", "heatmap": "heatmap"}.get(panel["kind"], "time_series"),
                "instant": is_instant,
                "legendFormat": "{{le}}" if panel["kind"] == "heatmap" else one.get("legend") or "__auto",
                "range": not is_instant,
                "refId": letter,
            }
        )
    return made


def description(panel):
    words = [" ".join(panel["shows"].split()), f"Unit: {panel.get('unit_words', UNITS[panel['unit']])}."]
    words.append("Healthy: " + " ".join(panel["healthy"].split()))
    if "needs" in panel:
        words.append(f"No data without {panel['needs']}.")
    pages = [name if "/" in name else RUNBOOK.format(name) for name in panel["see"]]
    words.append("Where to go: " + ", ".join(pages) + ".")
    return "\n\n".join(words)


def make_panel(panel, selectors, place, number):
    title = panel["title"]
    if "limit" in panel:
        if panel["kind"] == "stat":
            # The title of a tile has room for four words. What a query is called stands below its number.
            panel["legend"] = panel["limit_says"]
        else:
            title += f" ({panel['limit_says']})"
    defaults = {
        "color": {"mode": "thresholds" if panel["kind"] in ("stat", "bargauge", "state-timeline") else "palette-classic"},
        "mappings": mappings(panel),
        "thresholds": thresholds(panel),
        "unit": panel["unit"],
    }
    for name in ("decimals", "min", "max"):
        if name in panel:
            defaults[name] = panel[name]
    if panel["kind"] == "timeseries" and not panel.get("free_axis"):
        defaults["min"] = 0
    if panel["unit"] == "none":
        defaults["decimals"] = 0
    if (settings := custom(panel)) is not None:
        defaults["custom"] = settings
    made = {
        "datasource": SOURCE,
        "description": description(panel),
        "fieldConfig": {"defaults": defaults, "overrides": overrides(panel)},
        "gridPos": place,
        "id": number,
        "options": options(panel),
        "targets": targets(panel, selectors),
        "title": title,
        "type": panel["kind"],
    }
    if panel["kind"] == "table":
        # Each column of a label keeps its name; Prometheus' time of the query tells nothing.
        organize = {"excludeByName": {"Time": True}, "includeByName": {}, "indexByName": {}}
        organize["renameByName"] = panel.get("columns", {})
        made["transformations"] = [{"id": "merge", "options": {}}] if "queries" in panel else []
        made["transformations"].append({"id": "organize", "options": organize})
    return made


def make_panels(rows, selectors):
    made = []
    top = 0
    for row in rows:
        made.append(
            {
                "collapsed": False,
                "gridPos": {"h": 1, "w": GRID, "x": 0, "y": top},
                "id": len(made) + 1,
                "panels": [],
                "title": row["title"],
                "type": "row",
            }
        )
        top += 1
        left, height = 0, row.get("height", 8)
        for panel in row["panel"]:
            panel.setdefault("kind", "timeseries")
            width = panel.get("width", WIDTHS.get(panel["kind"], 8))
            if left + width > GRID:
                raise SystemExit(f"generate.py: {panel['title']}: {left} cells of its line are taken, and it has {width}")
            place = {"h": height, "w": width, "x": left, "y": top}
            made.append(make_panel(panel, selectors, place, len(made) + 1))
            left += width
            if left == GRID:
                left, top = 0, top + height
        if left:
            raise SystemExit(f"generate.py: row {row['title']}: {GRID - left} cells of its last line are empty")
    return made


def variable(one):
    common = {"hide": 0, "label": one["label"], "name": one["name"], "skipUrlSync": False, "description": one["description"]}
    if one["type"] == "datasource":
        choice = {"includeAll": False, "multi": False, "options": [], "query": "prometheus", "refresh": 1, "regex": ""}
        return common | choice | {"current": {}, "type": "datasource"}
    if one["type"] == "custom":
        values = one["values"]
        chosen = [{"selected": value == values[0], "text": value, "value": value} for value in values]
        choice = {"includeAll": False, "multi": False, "options": chosen, "query": ",".join(values)}
        return common | choice | {"current": chosen[0], "type": "custom"}
    return common | {
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "datasource": SOURCE,
        "definition": one["query"],
        "includeAll": True,
        "multi": True,
        "options": [],
        "query": {"qryType": 1, "query": one["query"], "refId": "PrometheusVariableQueryEditor-VariableQuery"},
        # Again when the time range changes, so that processes of that time can be chosen.
        "refresh": 2,
        "regex": "",
        "sort": 1,
        "type": "query",
    }


def annotations(source):
    made = [
        {
            "builtIn": 1,
            "datasource": OF_GRAFANA,
            "enable": True,
            "hide": True,
            "iconColor": "rgba(0, 211, 255, 1)",
            "name": "Annotations & Alerts",
            "type": "dashboard",
        }
    ]
    for one in source.get("annotation", []):
        expression = one["query"]
        for short in sorted(source["selectors"], key=len, reverse=True):
            expression = expression.replace(short, source["selectors"][short])
        made.append(
            {
                "datasource": SOURCE,
                "enable": True,
                "expr": expression,
                "hide": False,
                "iconColor": PALETTE[4],
                "name": one["name"],
                "step": "60s",
                "textFormat": one["text"],
                "titleFormat": one["title"],
                # What Grafana itself writes for "yes".
                "useValueForTime": "on",
            }
        )
    return {"list": made}


def link(to):
    return {
        "asDropdown": False,
        "icon": "dashboard",
        "includeVars": True,
        "keepTime": False,
        "tags": [],
        "targetBlank": False,
        "title": to["title"],
        "tooltip": "",
        "type": "link",
        "url": f"/d/{to['uid']}",
    }


def make(source, others):
    return {
        "annotations": annotations(source),
        "description": " ".join(source["description"].split()),
        "editable": True,
        "fiscalYearStartMonth": 0,
        "graphTooltip": 1,
        "id": None,
        "links": [link(other) for other in others],
        "liveNow": False,
        "panels": make_panels(source["row"], source["selectors"]),
        "refresh": source["refresh"],
        "schemaVersion": SCHEMA_VERSION,
        "tags": ["perennial"],
        "templating": {"list": [variable(one) for one in source["variable"]]},
        "time": {"from": source["from"], "to": "now"},
        "timepicker": {},
        "timezone": "browser",
        "title": source["title"],
        "uid": source["uid"],
        "version": 1,
        "weekStart": "",
    }


def sources():
    return {name: tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8")) for name in NAMES}


def generate():
    """The text of each dashboard, by name."""
    found = sources()
    texts = {}
    for name, source in found.items():
        others = [other for other in found.values() if other is not source]
        texts[name] = json.dumps(make(source, others), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    return texts


def path(name):
    return HERE / "dashboards" / f"{name}.json"


if __name__ == "__main__":
    for name, text in generate().items():
        path(name).write_text(text, encoding="utf-8")
        print(f"{path(name)}: {len(text.splitlines())} lines")
