"""Checks the spelling and grammar of articles with harper. See scripts/prose.sh."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
# Rules that a reference for programmers breaks on purpose, that prose.py has already, or whose every hit in the articles was a false one.
IGNORED = [
    "UseTitleCase", "SentenceCapitalization", "LongSentences", "OxfordComma", "DisjointPrefixes", "DiscourseMarkers", "OkToOkay",
    "ExpandMemoryShorthands", "ExpandTimeShorthands", "ExpandControl", "ExpandMinimum", "OrthographicConsistency", "SplitWords", "MergeWords",
    "CompoundNouns", "AnA", "MissingTo", "PronounInflectionBe", "PronounKnew", "QuantifierNumeralConflict", "ToTwoToo", "MassNouns", "FindOut",
    "AdjectiveDoubleDegree", "AdjectiveOfA", "ForAWhile", "CondenseAllThe", "MoreBetter", "ThereIsAgreement", "MissingPreposition",
]
# Names of alerts and modules, units, and single letters.
NAME = re.compile(r"\w*[a-z][A-Z]\w*|[A-Za-z][.]?|[A-Z][A-Z0-9]+s?|I/O")


def readable(markdown):
    """The page with names in place of code and links, line by line as before: harper looks at what they contain otherwise."""
    text = re.sub(r"<!--.*?-->", lambda match: "\n" * match.group(0).count("\n"), markdown, flags=re.DOTALL)
    text = re.sub(r"<doc:[^>]*>", "Overview", text)
    return re.sub(r"(`{1,2})(?!`)[^`\n]+\1(?!`)", "Name", text)


def main(harper, pages):
    if not pages:
        listed = subprocess.run(["git", "ls-files", "*.md"], check=True, capture_output=True, text=True).stdout.splitlines()
        # The protocol page is tables of bytes; the changelog quotes names of settings.
        pages = [page for page in listed if not page.endswith(("/Protocol.md", "/ProtocolAdministration.md")) and page != "CHANGELOG.md"]
    with tempfile.TemporaryDirectory() as folder:
        copies = {}
        for number, page in enumerate(pages):
            name = f"{number}.md"
            copies[name] = page
            (pathlib.Path(folder) / name).write_text(readable(pathlib.Path(page).read_text()))
        command = [harper, "--no-color", "lint", "--quiet", "--format", "json", "--dialect", "uk"]
        command += ["--user-dict-path", str(HERE / "dictionary.txt"), "--file-dict-path", folder, "--ignore", ",".join(IGNORED)]
        result = subprocess.run(command + [f"{folder}/{name}" for name in copies], capture_output=True, text=True)
    if not result.stdout.strip():
        sys.exit(f"prose: harper printed nothing: {result.stderr.strip()}")
    known = (HERE / "dictionary.txt").read_text().lower().split()
    found = 0
    for file in json.loads(result.stdout):
        for lint in file["lints"]:
            word = lint["matched_text"].removesuffix("'s")
            # harper doesn't take a word of the dictionary that the dialect spells otherwise.
            if lint["rule"] == "SpellCheck" and (NAME.fullmatch(word) or word.lower() in known):
                continue
            found += 1
            page = copies[pathlib.Path(file["file"]).name]
            print(f"{page}:{lint['line']}: [{lint['rule']}] {lint['matched_text']}: {lint['message']}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
