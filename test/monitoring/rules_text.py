"""The rules and the dashboard as a test sees them. No YAML library: Debian's Python has none without a further package."""
import glob
import json
import os
import re

RULES = "manifests/monitoring/neuron-agent.rules.yaml"
DASHBOARD = "manifests/monitoring/neuron-agent-dashboard.json"
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
HOLDER = {"namespace", "pod", "container"}


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def alerts(root):
    """{name: {"expr": text, "text": all of it}}, in order."""
    found = {}
    for part in re.split(r"\n      - alert: ", read(root, RULES))[1:]:
        name, text = part.split("\n", 1)
        text = text.split("\n  - name: ")[0]
        expression = re.search(r"expr: (?:\|-\n)?(.*?)\n        (?:for|labels):", text, re.S).group(1)
        found[name] = {"expr": " ".join(expression.split()), "text": " ".join(text.split())}
    return found


def panels(root):
    """[(title, query)] of the dashboard, with its variables filled in."""
    dashboard = json.loads(read(root, DASHBOARD))
    found = []
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            query = target["expr"].replace("$__rate_interval", "20s").replace("$node", ".*")
            found.append((panel["title"], query))
    return found


def metrics_of(query):
    """Names of metrics in a query: names that are followed neither by a parenthesis nor part of a list of labels."""
    query = re.sub(r'"[^"]*"', '""', query)
    query = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", query)
    query = re.sub(r"\{[^}]*\}", "{", query)
    query = re.sub(r"\[[^\]]*\]", " ", query)
    words = {"and", "or", "unless", "offset", "bool", "group_left", "group_right", "by", "without", "on", "ignoring"}
    return {match.group() for match in NAME.finditer(query)
            if match.group() not in words and not re.match(r"\s*\(", query[match.end():])}


def known_metrics(root):
    """Names in docs/metrics.md, which a unit test compares with the table of metrics; of histograms the parts, too."""
    rows = re.findall(r"^- `([a-zA-Z_][a-zA-Z0-9_]*)` \((counter|gauge|info|histogram)\b", read(root, "docs/metrics.md"), re.M)
    names = {name for name, _ in rows}
    for name, kind in rows:
        if kind == "histogram":
            names |= {name + "_bucket", name + "_sum", name + "_count"}
    return names


def labels_of_metrics(root):
    """{name: its labels} of docs/metrics.md: of its group, its own, of the holder; of histograms the parts, too."""
    found = {}
    group = set()
    for line in read(root, "docs/metrics.md").splitlines():
        if line.startswith("### "):
            group = set()
        if "Labels of all: " in line:
            of_all = line.split("Labels of all: ")[1]
            group = set(re.findall(r"`(\w+)`", of_all)) | (HOLDER if "holder" in of_all else set())
        row = re.match(r"- `(\w+)` \((counter|gauge|info|histogram)([^)]*)\)", line)
        if row is None:
            continue
        name, kind, own = row.groups()
        labels = group | set(re.findall(r"`(\w+)`", own)) | (HOLDER if "holder" in own else set())
        found[name] = labels
        if kind == "histogram":
            found.update({name + "_bucket": labels | {"le"}, name + "_sum": labels, name + "_count": labels})
    return found


def fed_series(root):
    """[(file, name, {label: value})] of the series that the tests of the alerts are fed."""
    for path in sorted(glob.glob(os.path.join(root, "test/monitoring/*.test.yaml"))):
        for name, labels in re.findall(r"series: '(\w+)(?:\{([^}]*)\})?'", read(root, path)):
            yield os.path.basename(path), name, dict(re.findall(r'(\w+)="([^"]*)"', labels))
