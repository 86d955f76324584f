"""Takes the sentences out of a file: of its comments, of its prose, and of the strings that a user may see."""

import pathlib
import re
import textwrap

STRING = r'"(?:\\\((?:[^()"\n]|"[^"\n]*"|\((?:[^()"\n]|"[^"\n]*"|\([^()\n]*\))*\))*\)|\\.|[^"\\\n])*"'
SWIFT = re.compile(rf'(?P<text>"""\n.*?""")|(?P<raw>#+".*?"#+)|(?P<string>{STRING})|(?P<comment>//[^\n]*)|(?P<block>/\*.*?\*/)', re.DOTALL)
SCRIPT = re.compile(
    r"(?P<text>`(?:\\.|[^`\\])*`)|(?P<string>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')|(?P<comment>(?<!:)//[^\n]*)|(?P<block>/\*.*?\*/)", re.DOTALL
)
INTERPOLATION = re.compile(r'\\\((?:[^()"\n]|"[^"\n]*"|\((?:[^()"\n]|"[^"\n]*"|\([^()\n]*\))*\))*\)')
HASH = re.compile(r"^\s*#(?!!)(.*)$")
DOCSTRING = re.compile(r'(?:^|\n) *"""(.*?)"""', re.DOTALL)
CODE = re.compile(r"(`+).+?\1")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
DOC_LINK = re.compile(r"<doc:[^>]*>|<https?:[^>]*>|https?://[^\s`]+")
LINK_TARGET = re.compile(r"\[[^\]]+\]: ")
BULLET = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
# A sentence may begin with a name, with code, or with the values that it describes: "1, lossless: producers wait".
END = re.compile(r"(?<=[.!?])[)\"*_]*\s+(?=[\"(*_\[]*[A-Z`]|`|\d+(?:, \w+(?:[ -]\w+)*)*: )")
# Modules with string literals for users. Literals of other modules are for programmers.
MESSAGES = re.compile(r"Sources/Sluice(?!Simulation)")


def of_file(path):
    suffix = pathlib.Path(path).suffix
    if suffix == ".md":
        yield from (("articles", line, text) for line, text in of_markdown(read(path)))
    elif suffix == ".swift":
        yield from of_code(path, read(path), SWIFT)
    elif suffix in (".js", ".ts", ".c", ".h", ".cpp"):
        yield from of_code(path, read(path), SCRIPT)
    elif suffix in (".sh", ".py") or path == ".ci/run":
        yield from (("comments", line, text) for line, text in of_hashes(read(path)))
        if suffix == ".py":
            yield from of_docstrings(read(path))


def read(path):
    return pathlib.Path(path).read_text(errors="replace")


def of_code(path, source, pattern):
    comments, previous, line, at = [], (-2, 0), 1, 0
    with_messages = MESSAGES.match(path)
    for match in pattern.finditer(source):
        line += source.count("\n", at, match.start())
        at = match.start()
        kind, text = match.lastgroup, match.group(0)
        if kind == "comment":
            body = text.lstrip("/")
            marker = len(text) - len(body)
            # A comment on the code doesn't continue the doc comment above it.
            if (line - 1, marker) != previous:
                comments.append((line, []))
            comments[-1][1].append(body)
            previous = line, marker
        elif kind == "block":
            comments.append((line, [part.strip(" */") for part in text.split("\n")]))
            previous = -2, 0
        elif with_messages:
            yield from (("messages", line, sentence) for sentence in of_literal(kind, text))
    for first, lines in comments:
        for number, text in of_lines(lines, first):
            yield "comments", number, text


def of_literal(kind, text):
    """A literal of four words or more, with a lower-case word, is taken for a message."""
    text = text.strip('#"`\'')
    # Lines of a message's source are joined; a new line of the message ends a sentence.
    text = INTERPOLATION.sub("{x}", text.replace("\\\n", "")).replace('\\"', "'")
    for part in re.split(r"\\n|\n\s*\n", text):
        part = " ".join(part.split())
        if len(re.findall(r"[A-Za-z{}'x]{2,}", part)) >= 4 and re.search(r"\b[a-z]{3,} [a-z]{2,}", part) and "<" not in part[:1]:
            yield from split(plain(part))


def of_hashes(source):
    lines, first = [], 0
    for number, line in enumerate(source.split("\n") + [""], 1):
        match = HASH.match(line)
        if match:
            if not lines:
                first = number
            lines.append(match.group(1))
        elif lines:
            yield from of_lines(lines, first)
            lines = []


def of_docstrings(source):
    for match in DOCSTRING.finditer(source):
        line = source.count("\n", 0, match.start(1)) + 1
        yield from (("comments", number, text) for number, text in of_lines(textwrap.dedent("    " + match.group(1)).split("\n"), line))


def of_markdown(source):
    source = re.sub(r"<!--.*?-->", lambda match: "\n" * match.group(0).count("\n"), source, flags=re.DOTALL)
    yield from of_lines(source.split("\n"), 1, headings=True)


def of_lines(lines, first, headings=False):
    """The sentences of paragraphs, list items and cells of tables, each with the line where its paragraph begins."""
    paragraph, start, fence = [], first, None
    for number, line in enumerate(lines + [""], first):
        stripped = line.strip()
        if fence:
            fence = None if stripped.startswith(fence) else fence
            continue
        opening = re.match(r"(`{3,}|~{3,})", stripped)
        ends = not stripped or opening or BULLET.match(line) or stripped[0] in "|#@" or stripped.startswith("MARK:")
        # A drawing or an example in a comment is indented.
        ends = ends or (not headings and re.match(r"\s{3,}\S", line) and not paragraph)
        if ends and paragraph:
            yield from ((start, sentence) for sentence in split(plain(" ".join(paragraph))))
            paragraph = []
        if opening:
            fence = opening.group(1)
        elif not stripped or stripped[0] in "#@" or (headings and LINK_TARGET.match(stripped)) or stripped.startswith("MARK:"):
            continue
        elif stripped[0] == "|":
            if not re.fullmatch(r"[|\s:-]+", stripped):
                for cell in re.split(r"(?<!\\)\|", stripped):
                    yield from ((number, sentence) for sentence in split(plain(cell.strip())) if len(sentence.split()) > 2)
        elif not headings and re.match(r"\s{3,}\S", line) and not paragraph and not BULLET.match(line):
            continue
        else:
            if not paragraph:
                start = number
            paragraph.append(BULLET.sub("", line).strip())


def plain(text):
    text = LINK.sub(r"\1", text)
    text = DOC_LINK.sub("Page", text)
    return CODE.sub(lambda match: "`c`", text)


def split(text):
    for sentence in END.split(text):
        sentence = sentence.strip().replace("`c`", "X").lstrip("*_>")
        # A name or a figure is no sentence.
        if len(re.findall(r"[A-Za-z][A-Za-z']+|X", sentence)) > 1:
            yield sentence
