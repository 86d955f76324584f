#!/usr/bin/env python3
"""Draws the diagrams of the articles as SVG, each for light and dark pages.

    scripts/diagrams.py            writes diagram-NAME.svg and diagram-NAME~dark.svg to the catalog's Resources
    scripts/diagrams.py --check    fails if the files there differ from what this script draws

All diagrams are 700 pixels wide: a drawing with numbered steps, and the steps as text below it.
"""

import pathlib
import sys
from xml.sax.saxutils import escape

RESOURCES = pathlib.Path(__file__).parent.parent / "Sources/Documentation/Sluice.docc/Resources"
WIDTH = 700
LEADING = 21

# The use of a color, and its value on light and on dark pages.
COLORS = {
    "page": ("#ffffff", "#17191b"),
    "text": ("#1d1d1f", "#f2f4f5"),
    "dim": ("#565c62", "#aab3b9"),
    "frame": ("#c6ced4", "#434c53"),
    "box": ("#f1f5f7", "#262c30"),
    "line": ("#6d767d", "#8d979e"),
    "record": ("#bfe6dc", "#1d5c4f"),
    "flow": ("#0a6e5c", "#5fd0b8"),
    "demand": ("#b34f0e", "#f4a764"),
    "gone": ("#eceff1", "#222629"),
    "bad": ("#b3261e", "#ff8f85"),
}
# The widths of characters in units of the font's size, as in DejaVu Sans, the widest font that readers are likely to have.
WIDTHS = {"i": 0.28, "j": 0.28, "l": 0.28, "t": 0.39, "f": 0.35, "r": 0.41, "s": 0.52, "c": 0.55, "I": 0.3, "m": 0.97, "w": 0.82, "M": 0.86, "W": 0.99}
WIDTHS |= dict.fromkeys(" .,", 0.32) | dict.fromkeys(":;!'()/|-", 0.37)
BOLD = 1.12


def width_of(text, size, bold=False):
    return sum(WIDTHS.get(c, 0.7 if c.isupper() else 0.62) for c in text) * size * (BOLD if bold else 1)


def wrapped(text, width, size):
    """The text as lines that are no wider than this."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if width_of(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


class Drawing:
    """The elements of one diagram. Coordinates are in pixels, from the top left."""

    def __init__(self, name, title, height, steps):
        self.name, self.title, self.steps = name, title, steps
        self.elements = []
        y = height + 8
        for step in steps:
            number, text = step if isinstance(step, tuple) else (None, step)
            if number:
                self.step(number, 26, y)
            for line in wrapped(text, WIDTH - 46 - 12, 14):
                self.text(line, 46, y + 5, anchor="start")
                y += LEADING
            y += 3
        self.height = y + 2

    def add(self, element, **attributes):
        content = attributes.pop("content", None)
        written = ""
        for name, value in attributes.items():
            written += f' {name.replace("_", "-")}="{value if isinstance(value, str) else format(value, "g")}"'
        self.elements.append(f"<{element}{written}/>" if content is None else f"<{element}{written}>{escape(content)}</{element}>")

    def text(self, text, x, y, size=14, color="text", anchor="middle", bold=False, halo=False, limit=None):
        width = width_of(text, size, bold)
        left = {"start": x, "middle": x - width / 2, "end": x - width}[anchor]
        if width > (limit or WIDTH) or left < 4 or left + width > WIDTH - 4:
            sys.exit(f"diagrams: in {self.name} there is no room for '{text}'")
        weight = {"font_weight": "600"} if bold else {}
        border = {"stroke": "{page}", "stroke_width": 6, "paint_order": "stroke"} if halo else {}
        self.add("text", x=x, y=y, font_size=size, fill=f"{{{color}}}", text_anchor=anchor, **weight, **border, content=text)

    def box(self, x, y, width, height, *lines, fill="box", stroke="frame", dashed=False, bold=True):
        """A rectangle with centered lines of text; the first one is bold."""
        dash = {"stroke_dasharray": "5 4"} if dashed else {}
        self.add("rect", x=x, y=y, width=width, height=height, rx=7, fill=f"{{{fill}}}", stroke=f"{{{stroke}}}", stroke_width=1.3, **dash)
        top = y + height / 2 - (len(lines) - 1) * 9 + 5
        for index, line in enumerate(lines):
            first = index == 0
            self.text(line, x + width / 2, top + 18 * index, size=13, color="text" if first else "dim", bold=bold and first, limit=width - 4)

    def frame(self, x, y, width, height, label):
        """A dashed rectangle around several boxes, with its label in the upper edge's inside."""
        self.add("rect", x=x, y=y, width=width, height=height, rx=9, fill="none", stroke="{frame}", stroke_width=1.3, stroke_dasharray="5 4")
        self.text(label, x + width / 2, y + 19, size=13, color="dim", limit=width - 10)

    def arrow(self, *points, color="line", dashed=False, crossed=False):
        """A line through the points, with an arrowhead at the last one."""
        (x1, y1), (x2, y2) = points[-2:]
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        tail = (x2 - 8 * dx, y2 - 8 * dy)
        path = " ".join(f"{x:g},{y:g}" for x, y in (*points[:-1], tail))
        dash = {"stroke_dasharray": "5 4"} if dashed else {}
        self.add("polyline", points=path, fill="none", stroke=f"{{{color}}}", stroke_width=2, **dash)
        head = [(x2, y2), (x2 - 9 * dx - 4.5 * dy, y2 - 9 * dy + 4.5 * dx), (x2 - 9 * dx + 4.5 * dy, y2 - 9 * dy - 4.5 * dx)]
        self.add("polygon", points=" ".join(f"{round(x, 1):g},{round(y, 1):g}" for x, y in head), fill=f"{{{color}}}")
        if crossed:
            self.cross((x1 + x2) / 2, (y1 + y2) / 2)

    def cross(self, x, y, size=7):
        for sign in (1, -1):
            self.add("line", x1=x - size, y1=y - size * sign, x2=x + size, y2=y + size * sign, stroke="{bad}", stroke_width=2.5)

    def line(self, x1, y1, x2, y2, color="line", dashed=False):
        dash = {"stroke_dasharray": "4 3"} if dashed else {}
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=f"{{{color}}}", stroke_width=1.6, **dash)

    def step(self, number, x, y):
        """The number of a step, in a circle."""
        self.add("circle", cx=x, cy=y, r=9.5, fill="{text}")
        self.add("text", x=x, y=y + 4.5, font_size=13, fill="{page}", text_anchor="middle", font_weight="600", content=str(number))

    def records(self, x, y, first, count, size=34, gone=()):
        """The cells of a log, with the offsets of the records."""
        for index in range(count):
            offset = first + index
            is_gone = offset in gone
            self.add(
                "rect", x=x + size * index, y=y, width=size, height=size, fill="{gone}" if is_gone else "{record}",
                stroke="{frame}" if is_gone else "{flow}", stroke_width=1.2, **({"stroke_dasharray": "3 3"} if is_gone else {}),
            )
            self.text(str(offset), x + size * (index + 0.5), y + size / 2 + 5, size=13, color="dim" if is_gone else "text")

    def marker(self, x, y, label, color="text", below=True, height=20):
        """A short arrow to a border between cells, with a label at its other end."""
        if below:
            self.arrow((x, y + height), (x, y), color=color)
            self.text(label, x, y + height + 15, size=13, color=color)
        else:
            self.arrow((x, y - height), (x, y), color=color)
            self.text(label, x, y - height - 6, size=13, color=color)

    def brace(self, x1, x2, y, label, color="dim"):
        """A line above cells from x1 to x2, with ticks at its ends and a label above."""
        self.line(x1, y, x2, y, color)
        for x in (x1, x2):
            self.line(x, y, x, y + 6, color)
        self.text(label, (x1 + x2) / 2, y - 7, size=13, color=color)

    def svg(self, is_dark):
        colors = {name: values[is_dark] for name, values in COLORS.items()}
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height:g}" width="{WIDTH}" height="{self.height:g}" role="img">',
            f"<title>{escape(self.title)}</title>",
            f'<rect width="{WIDTH}" height="{self.height:g}" rx="10" fill="{{page}}"/>',
            '<g font-family="system-ui, -apple-system, Helvetica, Arial, sans-serif">',
            *self.elements,
            "</g>",
            "</svg>",
        ]
        text = "\n".join(lines) + "\n"
        for name, value in colors.items():
            text = text.replace(f'"{{{name}}}"', f'"{value}"')
        return text


def demand():
    d = Drawing("demand", "Demand goes from the subscriber to the source, and records go the other way", 178, [
        (1, "The sink requests three records."),
        (2, "The client library sends this demand to the broker. The topic has no records yet."),
        (3, "The lossless topic grants its producer three records."),
        (4, "The client library requests three values from the source, for example a publisher."),
        (5, "Three records take the same way back. There is no fourth one until the sink requests it."),
    ])
    d.frame(12, 14, 234, 146, "the producer's program")
    d.frame(295, 14, 110, 146, "sluiced")
    d.frame(454, 14, 234, 146, "the subscriber's program")
    d.box(18, 52, 68, 84, "source")
    d.box(126, 52, 114, 84, "TopicSubject")
    d.box(303, 52, 94, 84, "topic", "lossless")
    d.box(460, 52, 114, 84, "RemoteTopic")
    d.box(614, 52, 68, 84, "sink")
    for start, end in ((86, 126), (240, 303), (397, 460), (574, 614)):
        d.arrow((end, 82), (start, 82), color="demand")
        d.arrow((start, 120), (end, 120), color="flow")
    for number, x in ((1, 594), (2, 429), (3, 271), (4, 106)):
        d.step(number, x, 64)
    d.text("demand", 429, 42, size=13, color="demand", halo=True)
    d.text("records", 429, 146, size=13, color="flow", halo=True)
    d.step(5, 271, 141)
    return d


def log():
    x, size = 26, 42
    at = lambda offset: x + size * offset
    d = Drawing("log", "A topic's log, with its floor, its head, and the positions of three subscribers", 212, [
        "Retention has removed the records 0 to 3: the floor is 4, and only rises. The head is 12.",
        (1, "shipping has received all records. Its lag is 0, and it waits for the record 12."),
        (2, "billing gets the record 7 next. Its lag is 5: the head minus its position."),
        (3, "audit stopped at 2. It continues at the floor, and gets a notice: 2 records dropped."),
    ])
    d.records(x, 76, 0, 12, size, gone=range(4))
    d.brace(at(0), at(4) - 4, 58, "expired or trimmed")
    d.brace(at(4) + 4, at(12), 58, "records that can be delivered")
    d.box(604, 74, 84, 46, "producer")
    d.arrow((604, 97), (at(12) + 2, 97), color="flow")
    d.marker(at(4), 122, "floor 4", color="bad")
    d.marker(at(12), 122, "head 12", color="flow")
    for number, name, offset in ((1, "shipping", 12), (2, "billing", 7), (3, "audit", 2)):
        if offset != 12:
            d.marker(at(offset), 122, str(offset))
        left = at(offset) - (width_of(name, 13) + 25) / 2
        d.step(number, left + 9.5, 180)
        d.text(name, left + 25, 185, size=13, anchor="start")
    d.text("oldest", at(0), 30, size=13, color="dim", anchor="start")
    d.text("newest", at(12), 30, size=13, color="dim", anchor="end")
    d.arrow((at(0) + 46, 26), (at(12) - 54, 26), color="frame")
    return d


def replay():
    x, size = 26, 42
    at = lambda offset: x + size * offset
    d = Drawing("replay", "A late subscriber gets old records, one Live marker, and then new records", 240, [
        (1, "The subscriber starts at 2. It replays old records until it has caught up."),
        (2, "It reaches the head, here 7, and gets the event Live once. sluice sub --until-live ends here."),
        (3, "From then on it gets each record as it is published: live."),
        "Replayed and live records form one sequence without gaps. Both use demand.",
    ])
    d.text("the log", at(0), 26, size=13, color="dim", anchor="start")
    d.records(x, 38, 0, 7, size)
    d.records(x + size * 7, 38, 7, 5, size)
    d.line(at(7), 28, at(7), 90, "demand", dashed=True)
    d.text("head when it caught up", at(7), 22, size=13, color="demand")
    d.box(604, 36, 84, 46, "producer")
    d.arrow((604, 59), (at(12) + 2, 59), color="flow")
    d.text("what the subscriber receives", at(3), 118, size=13, color="dim", anchor="start")
    d.records(at(2), 150, 2, 5, size)
    d.box(at(7) + 6, 150, 48, size, "Live", fill="page", stroke="demand")
    live = at(7) + 60
    d.records(live, 150, 7, 5, size)
    d.arrow((at(2) + 21, 82), (at(2) + 21, 146), color="flow")
    d.arrow((at(11) + 21, 82), (live + size * 4.5, 146), color="flow")
    d.step(1, at(2) + 2, 212)
    d.text("replay", at(2) + 18, 217, size=13, anchor="start")
    d.step(2, at(7) + 30, 212)
    d.step(3, live + 82, 212)
    d.text("live", live + 98, 217, size=13, anchor="start")
    return d


def group():
    d = Drawing("group", "A consumer group shares jobs among workers, retries a failed job, and moves it to a dead-letter topic", 238, [
        (1, "Each job goes to the worker that has waited longest, as soon as this worker requests one."),
        (2, "The worker acknowledges the job: it is done."),
        (3, "The job fails, its deadline passes, or its worker dies: it is delivered again."),
        (4, "It has failed in its last delivery (--deliveries 3): it moves to the dead-letter topic."),
    ])
    d.text("topic jobs", 97, 64, size=13, color="dim")
    d.records(12, 76, 7, 5, 34)
    d.arrow((182, 93), (232, 93), color="flow")
    d.box(232, 52, 138, 82, "group workers", "position, deliveries")
    for index, name in enumerate(("worker A", "worker B", "worker C")):
        y = 14 + 66 * index
        d.box(566, y, 122, 48, name)
    d.arrow((370, 64), (566, 32), color="flow")
    d.arrow((370, 88), (566, 94), color="flow")
    d.arrow((566, 112), (370, 106), dashed=True)
    d.arrow((370, 122), (566, 158), color="flow")
    d.arrow((566, 178), (330, 178), (330, 134), color="bad", dashed=True)
    d.step(1, 470, 48)
    d.step(2, 524, 111)
    d.step(3, 448, 178)
    d.arrow((270, 134), (270, 190), color="bad")
    d.step(4, 290, 172)
    d.box(190, 190, 160, 36, "topic jobs.dead")
    d.text("ack", 500, 127, size=13, color="dim")
    d.text("retry", 482, 196, size=13, color="bad")
    return d


def cluster():
    d = Drawing("cluster", "Three nodes own the shards of a cluster; when one node is lost, the others take its shards over", 282, [
        (1, "Each topic belongs to a shard, and each shard to an owner, by a lease of 2 s."),
        (2, "A client may use any node. Its node relays to the owner of the topic, here b1."),
        (3, "The owner stores durable records in the engine, which replicates and syncs them."),
        (4, "b1 is lost. When its lease has expired, b2 and b3 take over its shards."),
        (5, "Clients continue after 2 to 3 s: no record acknowledged as durable is lost or repeated."),
    ])
    for left, title, is_lost in ((12, "b1 owns shard 1", False), (358, "b1 is lost: b2 owns shard 1", True)):
        d.frame(left, 12, 330, 258, title)
        owners = [("b1", "shards 1, 2"), ("b2", "shards 3, 4"), ("b3", "shards 5, 6")]
        if is_lost:
            owners = [("b1", "killed"), ("b2", "1, 3, 4"), ("b3", "2, 5, 6")]
        for index, (node, shards) in enumerate(owners):
            x = left + 10 + 106 * index
            dead = is_lost and index == 0
            d.box(x, 116, 98, 56, node, shards, fill="gone" if dead else "box", stroke="bad" if dead else "flow", dashed=dead)
        d.box(left + 10, 218, 310, 42, "engine: 3 servers of NATS JetStream")
        d.box(left + 222, 44, 98, 34, "client")
        d.arrow((left + 271, 78), (left + 271, 116), color="flow")
        if is_lost:
            d.arrow((left + 250, 116), (left + 250, 98), (left + 165, 98), (left + 165, 116), color="flow")
            d.arrow((left + 165, 218), (left + 165, 172), color="demand")
            d.arrow((left + 271, 218), (left + 271, 172), color="demand")
            d.step(4, left + 218, 196)
            d.step(5, left + 292, 97)
        else:
            d.arrow((left + 250, 116), (left + 250, 98), (left + 59, 98), (left + 59, 116), color="flow")
            d.arrow((left + 59, 172), (left + 59, 218), color="flow")
            d.step(1, left + 24, 104)
            d.step(2, left + 154, 98)
            d.step(3, left + 80, 195)
    return d


def gateway():
    d = Drawing("gateway", "Back-pressure of a browser that stops reading reaches an MQTT publisher through two gateways", 176, [
        (1, "The browser stops reading its server-sent events. The buffers of its connection fill up."),
        (2, "The HTTP gateway requests records only for free room in these buffers: now none."),
        (3, "The lossless topic gets no demand from the gateway, and grants its producer none."),
        (4, "The MQTT gateway, which is this producer, has no grant and stops reading from its client."),
        (5, "The publisher's connection fills up, and the publisher waits. Other topics aren't affected."),
    ])
    d.frame(166, 14, 368, 146, "sluiced")
    d.box(12, 58, 104, 78, "publisher", "MQTT")
    d.box(176, 58, 96, 78, "gateway", "MQTT")
    d.box(302, 58, 96, 78, "topic", "lossless")
    d.box(428, 58, 96, 78, "gateway", "HTTP")
    d.box(584, 58, 104, 78, "browser", "stops reading")
    for start, end in ((116, 176), (272, 302), (398, 428), (524, 584)):
        d.arrow((start, 122), (end, 122), color="flow")
    for start, end in ((428, 398), (302, 272)):
        d.arrow((start, 76), (end, 76), color="demand", dashed=True)
    for x in (554, 146):
        d.cross(x, 122)
    d.step(1, 554, 98)
    d.step(2, 476, 48)
    d.step(3, 350, 48)
    d.step(4, 224, 48)
    d.step(5, 146, 98)
    return d


def main(arguments):
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    files = {}
    for drawing in (demand(), log(), replay(), group(), cluster(), gateway()):
        files[RESOURCES / f"diagram-{drawing.name}.svg"] = drawing.svg(False)
        files[RESOURCES / f"diagram-{drawing.name}~dark.svg"] = drawing.svg(True)
    if arguments:
        wrong = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
        wrong += [path for path in RESOURCES.glob("diagram-*") if path not in files]
        for path in sorted(wrong):
            print(f"diagrams: {path.name} isn't what scripts/diagrams.py draws. Run scripts/diagrams.py.", file=sys.stderr)
        return 1 if wrong else 0
    for path, text in files.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
