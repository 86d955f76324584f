#!/usr/bin/env python3
"""Compiles modules for their documentation only: without the bodies of functions, which takes seconds instead of a build's minutes.

  modules.py DIRECTORY MODULE...

Writes MODULE.swiftmodule and MODULE.swiftdoc of these modules and of the modules they depend on to DIRECTORY.
"""
import glob
import json
import subprocess
import sys

directory, wanted = sys.argv[1], sys.argv[2:]
package = json.loads(subprocess.run(["swift", "package", "dump-package"], stdout=subprocess.PIPE, check=True).stdout)
targets = {target["name"]: target for target in package["targets"]}


def needed(names):
    """These targets and all their dependencies, dependencies first."""
    found = {}
    for name in names:
        found.update(needed([dependency["byName"][0] for dependency in targets[name]["dependencies"]]))
        found[name] = targets[name]
    return found


def options(target):
    for setting in target["settings"]:
        (kind, value), = setting["kind"].items()
        if kind == "swiftLanguageMode":
            yield from ("-swift-version", value["_0"])
        elif kind == "enableUpcomingFeature":
            yield from ("-enable-upcoming-feature", value["_0"])
        elif kind == "strictMemorySafety":
            yield "-strict-memory-safety"
        else:
            sys.exit(f"docs: modules.py doesn't know the setting {kind} of {target['name']}")


maps = [argument for path in glob.glob("Sources/*/module.modulemap") for argument in ("-Xcc", f"-fmodule-map-file={path}")]
for name, target in needed(wanted).items():
    if target["type"] == "system":
        continue
    sources = sorted(glob.glob(f"{target.get('path', f'Sources/{name}')}/**/*.swift", recursive=True))
    subprocess.run(
        ["swiftc", "-emit-module", "-module-name", name, "-emit-module-path", f"{directory}/{name}.swiftmodule", "-I", directory, *maps,
         *options(target), "-package-name", package["name"], "-parse-as-library", "-whole-module-optimization", "-suppress-warnings",
         "-Xfrontend", "-experimental-skip-non-inlinable-function-bodies", *sources],
        check=True)
