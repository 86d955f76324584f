"""Draws the lines of standard input as a terminal, in SVG on standard output."""

import html
import sys

COLUMNS, SIZE, LEADING, MARGIN = 108, 13, 18, 16


def wrapped(line):
    while len(line) > COLUMNS:
        cut = line.rfind(" ", 0, COLUMNS) + 1 or COLUMNS
        yield line[:cut]
        line = line[cut:]
    yield line


lines = [part for line in sys.stdin.read().rstrip().splitlines() for part in wrapped(line.rstrip())]
# The last prompt has no command after it.
if lines and lines[-1].strip() == "$":
    lines.pop()
width, height = int(COLUMNS * SIZE * 0.602) + 2 * MARGIN, len(lines) * LEADING + 2 * MARGIN
print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">')
print('<title>A terminal in which sluice why names the subscriber for which a producer waits</title>')
print(f'<rect width="{width}" height="{height}" rx="8" fill="#14201f"/>')
print(f'<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="{SIZE}" xml:space="preserve">')
for number, line in enumerate(lines):
    is_command = line.startswith("$ ")
    color = "#ffffff" if is_command else "#b9d2ce"
    y = MARGIN + (number + 1) * LEADING - 5
    print(f'<text x="{MARGIN}" y="{y}" fill="{color}">{html.escape(line, quote=False)}</text>')
print("</g>\n</svg>")
