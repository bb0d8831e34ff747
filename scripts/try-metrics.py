# SPDX-License-Identifier: Apache-2.0
"""Asks a Prometheus every query of the dashboard and the alerts; draws what came back.

    try-metrics.py URL FOLDER
"""

import html
import json
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

# Why a query has no data in a dry run on a host with one node, and without counters or latencies.
EMPTY = {
    "homenode_workload_bound": "a dry run binds nothing",
    "homenode_workload_latency_seconds": "the configuration names no latency file",
    "homenode_workload_read_bytes_per_second": "no counter of DRAM reads on this host",
    "homenode_workload_local_access_ratio": "neither counters nor pages by node on this host",
}


def ask(url: str, path: str, **query: str) -> Any:
    with urllib.request.urlopen(f"{url}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=30) as answer:
        return json.load(answer)["data"]


def expression(text: str) -> str:
    for variable, value in (("$__rate_interval", "20s"), ("$instance", ".*"), ("$service", ".*"), ("[5m]", "[20s]")):
        text = text.replace(variable, value)
    return text


def legend(text: str, labels: dict[str, str]) -> str:
    for name, value in labels.items():
        text = text.replace("{{" + name + "}}", value)
    return text


def line(points: list[list[Any]], width: int = 360, height: int = 60) -> str:
    values = [float(v) for _, v in points]
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    step = width / max(1, len(values) - 1)
    path = " ".join(f"{i * step:.1f},{height - (v - low) / span * (height - 4) - 2:.1f}" for i, v in enumerate(values))
    return f'<svg width="{width}" height="{height}"><polyline points="{path}" fill="none" stroke="#36c"/></svg> {values[-1]:.6g}'


def panel(url: str, p: dict[str, Any], wrong: list[str]) -> str:
    out = [f"<section><h2>{html.escape(p['title'])}</h2>"]
    now = time.time()
    for target in p["targets"]:
        query = expression(target["expr"])
        found = ask(url, "query_range", query=query, start=f"{now - 60:.0f}", end=f"{now:.0f}", step="2")["result"]
        reason = next((why for name, why in EMPTY.items() if name in query), "")
        print(f"{len(found):4d} series  {p['title']}: {query}" + ("" if found else f"  [{reason or 'NO REASON'}]"))
        if not found and not reason:
            wrong.append(query)
        if not found:
            out.append(f"<p>no data: {html.escape(reason)}</p>")
        for series in found[:6]:
            name = legend(target.get("legendFormat", ""), series["metric"])
            if "{{" in name:
                wrong.append(f"the legend {name!r} of {query}")
            out.append(f"<p>{html.escape(name)}<br>{line(series['values'])}</p>")
        if len(found) > 6:
            out.append(f"<p>and {len(found) - 6} more</p>")
    return "".join(out) + "</section>"


def main() -> int:
    url, folder = sys.argv[1], Path(sys.argv[2])
    wrong: list[str] = []
    dashboard = json.loads(Path("deploy/grafana/homenode.json").read_text())
    body = "".join(panel(url, p, wrong) for p in dashboard["panels"])
    rules = [r for g in ask(url, "rules")["groups"] for r in g["rules"]]
    for r in rules:
        print(f"alert {r['name']}: {r['health']}, {r['state']}")
        if r["health"] != "ok":
            wrong.append(r["name"])
    style = "body{font:13px sans-serif;display:grid;grid-template-columns:repeat(3,1fr);gap:8px}h2{font-size:14px}section{border:1px solid #ccc;padding:6px}"
    (folder / "panels.html").write_text(f"<!doctype html><meta charset=utf-8><style>{style}</style>{body}")
    for text in wrong:
        print("wrong: " + text, file=sys.stderr)
    return 1 if wrong or not rules else 0


if __name__ == "__main__":
    sys.exit(main())
