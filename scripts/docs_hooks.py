# SPDX-License-Identifier: Apache-2.0
"""What the site needs beyond mkdocs.yml: decision records in its navigation, so that a new
one needs no entry, and lists as GitHub reads them."""

import re
from pathlib import Path

ITEM = re.compile(r" *([-*]|\d+\.) ")
SHALLOW = re.compile(r" {2,3}(?=\S)")


def on_config(config):
    docs = Path(config.docs_dir)
    records = sorted(docs.glob("decisions/[0-9]*.md"))
    entries = [{"About decisions": "decisions/README.md"}]
    entries += [{title(r): r.relative_to(docs).as_posix()} for r in records]
    config.nav.append({"Decisions": entries})
    return config


def title(record):
    """The first heading: "0001 — The demonstration's mix"."""
    return record.read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ")


def on_page_markdown(markdown, **_):
    """GitHub begins a list right after a paragraph, and takes two or three spaces for what
    belongs to an item; Python-Markdown wants an empty line and four spaces."""
    lines, code, shift = [], False, ""
    for line in markdown.split("\n"):
        fence = line.lstrip().startswith("```")
        if not code:
            shallow = SHALLOW.match(line)
            shift = " " * (4 - shallow.end()) if shallow else ""
            after_text = bool(lines) and lines[-1].strip() != "" and not ITEM.match(lines[-1])
            if ITEM.match(line) and after_text:
                lines.append("")
        lines.append(shift + line if line else line)
        code ^= fence
    return "\n".join(lines)
