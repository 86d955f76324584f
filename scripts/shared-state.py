#!/usr/bin/env python3
"""Counts the mutable stored properties of classes that code outside their type can change, by module.

  scripts/shared-state.py                  the counts, and their share of all stored properties of classes
  scripts/shared-state.py --list [MODULE]  the properties as file:line
  scripts/shared-state.py --check          fails when a module has more than scripts/shared-state.txt allows
  scripts/shared-state.py --lower          lowers the numbers of that file to today's; never raises one

A type whose extension in another file needs its state to be visible is two types: give each its own state.
"""
import pathlib, re, sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "prose"))
import sentences

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMITS = ROOT / "scripts/shared-state.txt"
TYPE = re.compile(
    r"^\s*(?P<modifiers>(?:@\w+(?:\([^)]*\))?\s+|(?:public|package|internal|fileprivate|private|open|final|indirect|unsafe|nonisolated)\s+)*)"
    r"(?P<kind>class|struct|enum|actor|extension|protocol)\s+(?P<name>[A-Z]\w*)")
PROPERTY = re.compile(
    r"^\s*(?P<modifiers>(?:@\w+(?:\([^)]*\))?\s+|(?:public|package|internal|fileprivate|private|open|final|lazy|weak|unowned|nonisolated|unsafe|static|override)"
    r"(?:\([a-z]+\))?\s+)*)(?P<kind>let|var)\s+(?P<name>\w+)(?P<rest>.*)$")
OBSERVED = re.compile(r"\{\s*(?:willSet|didSet)\b")


def code(text):
    """The text without comments and strings, on the same lines."""
    return sentences.SWIFT.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), text)


def properties(text):
    """Yields (line, class, name, is_mutable, is_visible) for each stored property in the body of a class."""
    scopes, pending = [], (None, False)
    lines = code(text).split("\n")
    for number, line in enumerate(lines, 1):
        if scopes and scopes[-1][0] and (found := PROPERTY.match(line)) and "static" not in found["modifiers"]:
            rest = found["rest"]
            following = rest + " " + " ".join(lines[number : number + 1])
            is_computed = "{" in rest and "=" not in rest.split("{")[0] and not OBSERVED.search(following)
            if not is_computed:
                is_mutable = found["kind"] == "var"
                # Inlinable code can't use what is private.
                is_hidden = re.search("private|usableFromInline", found["modifiers"]) or any(scope[1] for scope in scopes)
                yield number, scopes[-1][0], found["name"], is_mutable, is_mutable and not is_hidden
        # Other files don't see the members of a private type.
        if found := TYPE.match(line):
            pending = (found["name"] if found["kind"] == "class" else None, "private" in found["modifiers"])
        for character in line:
            if character == "{":
                scopes.append(pending)
                pending = (None, False)
            elif character == "}" and scopes:
                scopes.pop()


def main(arguments):
    usage = __doc__
    if arguments[:1] in (["-h"], ["--help"]):
        print(usage)
        return 0
    if arguments and arguments[0] not in ("--list", "--check", "--lower") or len(arguments) > (2 if arguments[:1] == ["--list"] else 1):
        print(usage, file=sys.stderr)
        return 2
    visible, stored, places = {}, {}, []
    for path in sorted((ROOT / "Sources").rglob("*.swift")):
        module = path.relative_to(ROOT / "Sources").parts[0]
        for line, owner, name, _, is_visible in properties(path.read_text(encoding="utf-8")):
            stored[module] = stored.get(module, 0) + 1
            if is_visible:
                visible[module] = visible.get(module, 0) + 1
                places.append((module, f"{path.relative_to(ROOT)}:{line}: {owner}.{name}"))
    if arguments[:1] == ["--list"]:
        for module, place in places:
            if module in arguments[1:] or len(arguments) == 1:
                print(place)
        return 0
    limits = {}
    if LIMITS.exists():
        limits = {line.split()[0]: int(line.split()[1]) for line in LIMITS.read_text().splitlines() if line and line[0] != "#"}
    if arguments == ["--check"]:
        code = 0
        for module, count in sorted(visible.items()):
            if count > limits.get(module, 0):
                print(
                    f"shared-state: {module} has {count} mutable properties of classes that other types can change, where scripts/shared-state.txt allows "
                    f"{limits.get(module, 0)}; scripts/shared-state.py --list {module} names them. Make the new ones private, or split the type.", file=sys.stderr)
                code = 1
        return code
    if arguments == ["--lower"]:
        head = [line for line in LIMITS.read_text().splitlines() if line.startswith("#")] if LIMITS.exists() else []
        counts = {module: min(count, limits.get(module, count)) for module, count in visible.items()}
        LIMITS.write_text("\n".join(head + [f"{module:<24}{count:>4}" for module, count in sorted(counts.items())]) + "\n")
        return 0
    for module in sorted(stored):
        count = visible.get(module, 0)
        print(f"{module:<24}{count:>4} of {stored[module]:>4}  {100 * count / stored[module]:5.1f} %")
    total = sum(stored.values())
    print(f"{'':<24}{sum(visible.values()):>4} of {total:>4}  {100 * sum(visible.values()) / total:5.1f} %")
    return 0


sys.exit(main(sys.argv[1:]))
