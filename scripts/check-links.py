#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the relative links and anchors of the Markdown files outside docs/, which MkDocs
does not see: README.md, CONTRIBUTING.md and their like. Links to other sites are not followed."""

import re
import subprocess
import sys
from pathlib import Path

FENCE = re.compile(r"^```.*?^```", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*)$", re.M)


def main():
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        capture_output=True, text=True, check=True,
    ).stdout.split()
    checked, wrong = 0, []
    for name in (n for n in names if not n.startswith("docs/") and Path(n).exists()):
        for target in LINK.findall(FENCE.sub("", Path(name).read_text(encoding="utf-8"))):
            if "://" in target or target.startswith("mailto:"):
                continue
            checked += 1
            if reason := broken(Path(name), target):
                wrong.append(f"check-links: {name}: link {target}: {reason}")
    if not checked:
        wrong.append("check-links: no link was found, so nothing was checked")
    print("\n".join(wrong) or f"check-links: {checked} links outside docs/ lead somewhere", file=sys.stderr if wrong else sys.stdout)
    return 1 if wrong else 0


def broken(source, target):
    path, _, anchor = target.partition("#")
    file = source.parent / path if path else source
    if not file.exists():
        return "there is no such file"
    if anchor and anchor not in slugs(file):
        return "there is no such heading"
    return ""


def slugs(file):
    """Anchors as GitHub makes them."""
    text = FENCE.sub("", file.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in HEADING.findall(text)}


if __name__ == "__main__":
    sys.exit(main())
