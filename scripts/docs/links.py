#!/usr/bin/env python3
"""Checks the links of pages to files and headings of the repository, which DocC doesn't check.

  links.py PAGE...
"""
import os
import re
import sys

LINKS = re.compile(r"\]\(([^):]+)\)|^\[[^]]+\]: ([^:\n]+)$", re.MULTILINE)


def anchors(path):
    """The headings of a page as GitHub writes them in links."""
    with open(path, encoding="utf-8") as file:
        titles = re.findall(r"^#+ +(.*)$", file.read(), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-") for title in titles}


failed = False
for page in sys.argv[1:]:
    with open(page, encoding="utf-8") as file:
        links = [inline or reference for inline, reference in LINKS.findall(file.read())]
    for link in links:
        name, _, heading = link.partition("#")
        directory = os.path.dirname(page)
        path = os.path.join(directory, name) if name else page
        # DocC finds an image of the catalog by its name.
        if not os.path.exists(path) and not os.path.exists(os.path.join(directory, "Resources", link)):
            print(f"docs: {page} links to {link}, which doesn't exist", file=sys.stderr)
            failed = True
        elif heading and heading not in anchors(path):
            print(f"docs: {page} links to the heading {heading} of {path}, which doesn't exist", file=sys.stderr)
            failed = True
sys.exit(failed)
