#!/usr/bin/env python3
"""Finishes a site that docc merge has written.

  finish.py SITE

- Adds site.css to the style sheet.
- Puts all modules into one sidebar, and the headings of articles below their pages. The filter of the sidebar and quick navigation (the key /) search
  these titles in the browser, so any web server for files is enough. DocC's renderer shows only the current module if several nodes are modules.
- Marks blocks of plain text that aren't drawings, so that site.css wraps their lines.
- Sorts the members of JSON objects, which DocC writes in any order: the same source gives the same bytes.
"""
import glob
import json
import os
import re
import sys

FIRST = "documentation/sluice"
# Lines of a box, an arrow, or columns.
DRAWING = re.compile(r"[─-╿]|-->|<--|\+--|\S {3,}\S")

site = sys.argv[1]


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write(path, content):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def mark_text(value):
    """Distinguishes text that may wrap from drawings, in all code blocks of a page."""
    if isinstance(value, list):
        for each in value:
            mark_text(each)
    elif isinstance(value, dict):
        if value.get("type") == "codeListing" and value.get("syntax") == "text":
            if not any(DRAWING.search(line) for line in value["code"]):
                value["syntax"] = "plain"
        for each in value.values():
            mark_text(each)


def headings(path):
    """The sections of an article as nodes of the sidebar."""
    nodes = []
    for section in read(f"{site}/data{path}.json").get("primaryContentSections", []):
        for block in section.get("content", []):
            if block["type"] == "heading" and block["level"] in (2, 3) and block["text"] != "Overview":
                nodes.append({"path": f"{path}#{block['anchor']}", "title": block["text"], "type": "section"})
    return nodes


def extend(node):
    if node["type"] == "article":
        node.setdefault("children", []).extend(headings(node["path"]))
    for child in node.get("children", []):
        if child["type"] == "module":
            child["type"] = "collection"
        # The root has the same name.
        if child.get("path") == f"/{FIRST}":
            child["title"] = "Guides"
        extend(child)


sheets = glob.glob(f"{site}/css/index.*.css")
if len(sheets) != 1:
    sys.exit(f"docs: expected one style sheet {site}/css/index.*.css, found {len(sheets)}")
with open(os.path.join(os.path.dirname(__file__), "site.css"), encoding="utf-8") as rules, open(sheets[0], "a", encoding="utf-8") as sheet:
    sheet.write("\n" + rules.read())

for directory, _, names in os.walk(site):
    for name in names:
        if name.endswith(".json"):
            path = os.path.join(directory, name)
            content = read(path)
            mark_text(content)
            write(path, content)

index = read(f"{site}/index/index.json")
for roots in index["interfaceLanguages"].values():
    for root in roots:
        extend(root)
write(f"{site}/index/index.json", index)
# Without this file the browser reports an error for each page.
write(f"{site}/theme-settings.json", {"features": {"docs": {"quickNavigation": {"enable": True}}}})
with open(f"{site}/index.html", "w", encoding="utf-8") as file:
    file.write(f'<!doctype html><meta charset="utf-8"><title>Sluice</title><meta http-equiv="refresh" content="0; url={FIRST}/">')
    file.write(f'<a href="{FIRST}/">Documentation of Sluice</a>\n')
