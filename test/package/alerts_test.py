#!/usr/bin/env python3
"""Alerts and dashboard: every metric is one of the agent's, every alert has its words, its section and its test, and what it says to
do is what the verdict says (agent/health/reasons.h).

usage: alerts_test.py SOURCE_ROOT     one line per problem; exit status 1 when there is one
"""
import glob
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "monitoring"))
import others  # noqa: E402
import rules_text  # noqa: E402

PROMETHEUS = {"up", "ALERTS"}  # its own
SELECTOR = re.compile(r"(neuron_device|efa|neuron_kernel_log)_health_info\{([^}]*)\}")
MATCHER = re.compile(r'(state|reason)(=~|!~|!=|=)"([^"]*)"')


def check_metrics(root):
    known = rules_text.known_metrics(root)
    if len(known) < 60:
        yield f"docs/metrics.md names {len(known)} metrics: this test checks nothing"
    queries = [("alert " + name, alert["expr"]) for name, alert in rules_text.alerts(root).items()]
    queries += [("panel " + title, query) for title, query in rules_text.panels(root)]
    if len(queries) < 50:
        yield f"{len(queries)} queries: this test checks nothing"
    for where, query in queries:
        names = rules_text.metrics_of(query)
        if not names:
            yield f"{where} asks for no metric: {query}"
        yield from (f"{where} asks for {name}, which docs/metrics.md does not know" for name in sorted(names - known - PROMETHEUS))


def check_alerts(root):
    page = rules_text.read(root, "docs/alerts.md")
    sections = set(re.findall(r"^## (\w+)$", page, re.M))
    tests = [rules_text.read(root, path) for path in glob.glob(os.path.join(root, "test/monitoring/*.test.yaml"))]
    alerts = rules_text.alerts(root)
    yield from (f"docs/alerts.md has a section {name}, which is no alert" for name in sorted(sections - set(alerts)))
    for name, alert in alerts.items():
        text = alert["text"]
        for part in ("severity:", "summary:", "description:", "runbook:"):
            if part not in text:
                yield f"alert {name} has no {part[:-1]}"
        if f"runbook_url: docs/alerts.md#{name.lower()}" not in text:
            yield f"alert {name}: its runbook_url is not its section of docs/alerts.md"
        if name not in sections:
            yield f"docs/alerts.md has no section {name}"
        severity = re.search(r"severity: (\w+)", text).group(1)
        waits = {"m": " min", "h": " h"}
        after = re.search(r" for: (\d+)([mh]) ", text)
        begin = f"## {name}\n\n{severity.capitalize()}{', ' + after.group(1) + waits[after.group(2)] if after else ''}: "
        if begin not in page:
            yield f"docs/alerts.md does not have {begin!r}"
        fires = f"""labels: '{{alertname="{name}"}}'"""
        if not any(fires in test and re.search(rf"- name: {name}\b", test) for test in tests):
            yield f"no test of test/monitoring lets {name} fire"


def reasons(root):
    """[(code, state, action, of what)] of the table of reasons; of what: the metrics' families, 'efa' or so."""
    codes = rules_text.read(root, "agent/model/health.h")
    values = dict(re.findall(r'(k\w+) = "(\w+)"', codes))
    of_efa = set(re.findall(r'= "(\w+)"', codes[codes.index("// Reasons of EFA interfaces"):]))
    table = rules_text.read(root, "agent/health/reasons.h")
    of_node = set(re.findall(r"reasons::(k\w+)", rules_text.read(root, "agent/health/kernel_errors.cpp")))
    actions = dict(re.findall(r'string_view (k\w+) = "([^"]*)"', table))
    row = re.compile(r'Reason (k\w+)\{\s*code::(k\w+),\s*HealthState::(\w+),\s*((?:"[^"]*"\s*)+),\s*(k\w+|(?:"[^"]*"\s*)+)\}')
    for name, code, state, _, action in row.findall(table):
        said = actions[action] if action in actions else "".join(re.findall(r'"([^"]*)"', action))
        families = {"efa" if values[code] in of_efa else "neuron_device"} | ({"efa"} if values[code] == "not_answering" else set())
        yield values[code], state, said, families | ({"neuron_kernel_log"} if name in of_node else set())


def matches(selector, code, state):
    for label, operator, wanted in MATCHER.findall(selector):
        value = {"state": state, "reason": code}[label]
        equal = re.fullmatch(wanted, value) is not None if "~" in operator else wanted == value
        if equal == operator.startswith("!"):
            return False
    return True


def check_reasons(root):
    alerts = rules_text.alerts(root)
    found = list(reasons(root))
    if len(found) < 30:
        yield f"agent/health/reasons.h has {len(found)} reasons: this test checks nothing"
    if sum("neuron_kernel_log" in families for *_, families in found) < 8:
        yield "the kernel log gives fewer than 8 reasons: this test checks nothing"
    for code, state, action, families in found:
        for family in sorted(families):
            for_it = [name for name, alert in alerts.items()
                      if any(of == family and matches(selector, code, state) for of, selector in SELECTOR.findall(alert["expr"]))]
            if not for_it and action:
                yield f"no alert for {family} {state} {code}, which asks for something: {action}"
            if len(for_it) > 1:
                yield f"{family} {state} {code} gives several alerts: {for_it}"
            for name in for_it:
                if action.lower() not in alerts[name]["text"].lower():
                    yield f"alert {name} does not say of {code}: {action}"


def refusal_reasons(root):
    """The reasons that neuron_agent_refusals_total may count by: of Allocate and of claims."""
    lists = (("Kind", "plugin/device/refusals.h"), ("RefusalReason", "plugin/dra/claim/claim_request.h"))
    texts = [re.search(rf"enum class {name} \{{(.*?)\}};", rules_text.read(root, path), re.S).group(1) for name, path in lists]
    return {reason for text in texts for reason in re.findall(r"^\s*(\w+),", text, re.M)}


def check_fed_series(root):
    """The tests of the alerts are fed with series that an agent has."""
    known = rules_text.labels_of_metrics(root)
    reasons = refusal_reasons(root)
    fed = list(rules_text.fed_series(root))
    if len(fed) < 60 or len(reasons) < 25:
        yield f"{len(fed)} series are fed, {len(reasons)} reasons of refusals: this test checks nothing"
    for where, name, labels in fed:
        if name in PROMETHEUS:
            continue
        wrong = sorted(set(labels) - known.get(name, set()) - {"instance", "job"})
        if name not in known or wrong:
            yield f"{where} feeds {name} with labels {wrong or sorted(labels)}, which the agent does not have"
        if name == "neuron_agent_refusals_total" and labels.get("reason") not in reasons:
            yield f"{where} feeds {name} with a reason that is none: {labels}"
    page = rules_text.read(root, "docs/metrics.md")
    items = re.findall(r"^- (`.*?`):", page[page.index("### Refusals"):page.index("## Queries of other tools")], re.M)
    table = {name for item in items for name in re.findall(r"`(\w+)`", item)}
    yield from (f"docs/metrics.md, Refusals: {reason} is in the table or in the program alone" for reason in sorted(table ^ reasons))


def check_increases(root):
    """What happened before the first scrape after a start is no increase; alerts on counters of the process look at it all the same."""
    for name, alert in rules_text.alerts(root).items():
        counters = re.findall(r"(?:increase|rate)\((neuron_(?:agent|kernel_log)_\w+)", alert["expr"])
        if counters and "time() - neuron_agent_start_time_seconds" not in alert["expr"]:
            yield f"alert {name} does not see what {counters} counted before the first scrape after a start"
        for series in re.findall(r"increase\((node_amazonefa_\w+)", alert["expr"]):
            yield f"alert {name} does not see what {series} counts when the interface gets another holder: its series begins anew"


def check_nothing(root):
    """What returns nothing is explained where people look for it."""
    page = rules_text.read(root, "docs/metrics.md")
    yield from (f"docs/metrics.md does not say why {text} returns nothing" for text in others.NOTHING.values() if text not in page)


def main():
    root = sys.argv[1]
    problems = [*check_metrics(root), *check_alerts(root), *check_reasons(root), *check_fed_series(root), *check_increases(root),
                *check_nothing(root)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
