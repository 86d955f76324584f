"""Counts the markers of markers.txt and words.txt. See scripts/prose.sh."""

import collections
import fnmatch
import math
import pathlib
import re
import subprocess
import sys

import sentences

HERE = pathlib.Path(__file__).parent
# The share of sentences with a marker, in percent.
TARGETS = {"comments": 1.0, "articles": 0.5, "messages": 0.5}
# The most words of a sentence.
LONGEST = {"comments": 35, "articles": 40, "messages": 40}


def lines_of(name):
    for line in (HERE / name).read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            yield line


def markers():
    for line in lines_of("markers.txt"):
        name, pattern = re.split(r"\s{2,}", line.strip(), maxsplit=1)
        yield name, pattern
    for line in lines_of("words.txt"):
        yield "word", line.rsplit(" => ", 1)[0]


class Prose:
    """The sentences of all tracked files, each with the markers that it has."""

    def __init__(self):
        self.patterns = [(name, re.compile(pattern, re.IGNORECASE)) for name, pattern in markers()]
        # One expression finds out quickly that a sentence has no marker, which most have not.
        self.any = re.compile("|".join(f"(?:{pattern})" for _, pattern in markers()), re.IGNORECASE)
        self.allowed = [[part.strip() for part in line.split(" | ", 3)] for line in lines_of("allowed.txt")]
        self.used = set()

    def hits(self, kind, path, text):
        found = {}
        if len(text.split()) > LONGEST[kind]:
            found["long sentence"] = f"{len(text.split())} words"
        if self.any.search(text):
            for name, pattern in self.patterns:
                match = pattern.search(text)
                if match and name not in found:
                    found[name] = match.group(0).strip()
        return {name: part for name, part in found.items() if not self.is_allowed(path, name, text)}

    def is_allowed(self, path, marker, text):
        for index, (where, name, part, _) in enumerate(self.allowed):
            if name == marker and part.lower() in text.lower() and fnmatch.fnmatch(path, where):
                self.used.add(index)
                return True
        return False

    def __iter__(self):
        files = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout.splitlines()
        for path in files:
            if not pathlib.Path(path).exists():
                continue
            for kind, line, text in sentences.of_file(path):
                yield kind, path, line, text, self.hits(kind, path, text)


def module(kind, path):
    parts = path.split("/")
    if kind == "articles":
        return path if len(parts) == 1 else next((part for part in parts if part.endswith(".docc")), "/".join(parts[:2]))
    if parts[0] in ("Sources", "Clients", "Tests"):
        return "/".join(parts[:2])
    return parts[0]


def baseline():
    numbers = {}
    for line in lines_of("baseline.txt"):
        kind, name, number = line.split()
        numbers[kind, name] = float(number)
    return numbers


def main(arguments):
    prose = Prose()
    if arguments[:1] == ["--list"]:
        return list_hits(prose, arguments[1:])
    counts = Counts(prose)
    if arguments == ["--lower"]:
        return lower(counts)
    if arguments == ["--check"]:
        return check(counts, prose)
    report(counts)
    return 0


class Counts:
    """Sentences by kind and module: all of them, those with a marker, and those that are too long."""

    def __init__(self, prose):
        self.total, self.bad, self.long = collections.Counter(), collections.Counter(), collections.Counter()
        self.markers = collections.defaultdict(collections.Counter)
        for kind, path, _, _, hits in prose:
            key = kind, module(kind, path)
            self.total[key] += 1
            self.bad[key] += bool(hits)
            self.long[key] += "long sentence" in hits
            self.markers[kind].update(hits.keys())

    def rate(self, key):
        return 100 * self.bad[key] / self.total[key]

    def keys(self, kind):
        return sorted(key for key in self.total if key[0] == kind)


def list_hits(prose, arguments):
    if not 1 <= len(arguments) <= 2 or arguments[0] not in TARGETS:
        sys.exit("prose: --list needs comments, articles or messages, and takes one path")
    for kind, path, line, text, hits in prose:
        if hits and kind == arguments[0] and path.startswith("".join(arguments[1:])):
            found = "; ".join(f"{name}: {part}" for name, part in hits.items())
            print(f"{path}:{line}: [{found}] {text}")
    return 0


def report(counts):
    for kind, target in TARGETS.items():
        keys = counts.keys(kind)
        total, bad = sum(counts.total[key] for key in keys), sum(counts.bad[key] for key in keys)
        print(f"{kind}: {bad} of {total} sentences, {100 * bad / max(total, 1):.2f} % (target {target} %)")
        for name, count in counts.markers[kind].most_common():
            print(f"    {count:6} {100 * count / total:6.2f} %  {name}")
        for key in sorted(keys, key=lambda key: -counts.rate(key)):
            if counts.bad[key]:
                print(f"    {counts.bad[key]:6} {counts.rate(key):6.2f} %  of {counts.total[key]:6}  {key[1]}")


def check(counts, prose):
    numbers, failures = baseline(), []
    for kind, target in TARGETS.items():
        for key in counts.keys(kind):
            limit = numbers.get(key, target)
            # Rounded in favour of small modules, in which one sentence is more than a percent.
            if counts.bad[key] > math.ceil(limit * counts.total[key] / 100 - 1e-9):
                failures.append(
                    f"{counts.rate(key):.2f} % of the sentences in {kind} of {key[1]} are hard to read; the limit is {limit} %."
                    f" Rewrite what you changed: scripts/prose.sh --list {kind} names the sentences."
                )
    for key in counts.keys("articles"):
        limit = numbers.get(("long", key[1]), 0)
        if counts.long[key] > limit:
            failures.append(
                f"{counts.long[key]} sentences in {key[1]} have more than {LONGEST['articles']} words; the limit is {limit:g}."
                " Split them: scripts/prose.sh --list articles names them."
            )
    for index, (where, name, part, _) in enumerate(prose.allowed):
        if index not in prose.used:
            failures.append(f"allowed.txt has a line without a hit. Remove it: {where} | {name} | {part}")
    for failure in failures:
        print(f"prose: {failure}", file=sys.stderr)
    return 1 if failures else 0


def lower(counts):
    file = HERE / "baseline.txt"
    head = [line for line in file.read_text().splitlines() if line.startswith("#")]
    old = baseline()
    # The first numbers are today's; from then on a module without one has the target.
    rows = []
    for kind, target in TARGETS.items():
        for key in counts.keys(kind):
            number = math.ceil(counts.rate(key) * 10 - 1e-9) / 10
            number = min(number, old.get(key, target)) if old else number
            if number > target:
                rows.append(f"{kind:10} {key[1]:40} {number}")
    for key in counts.keys("articles"):
        number = min(counts.long[key], old.get(("long", key[1]), 0)) if old else counts.long[key]
        if number:
            rows.append(f"{'long':10} {key[1]:40} {number:g}")
    file.write_text("\n".join(head + rows) + "\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BrokenPipeError:
        sys.exit(1)
