#!/usr/bin/env python3
"""Lists what the programs are linked with, as CycloneDX in JSON: scripts/release.sh --artifacts.

  linked.py PROGRAMS MAPS VERSION [HOMEPAGE]

PROGRAMS has sluiced and sluice, MAPS the linker's maps sluiced.map and sluice.map, which name the static libraries that something was taken from.
Libraries that are loaded at run time are those that the programs name. Their packages are this system's.
"""
import hashlib
import json
import os
import re
import subprocess
import sys
import time
import uuid

programs, maps, version = sys.argv[1:4]
homepage = sys.argv[4] if len(sys.argv) > 4 else ""
names = ["sluiced", "sluice"]


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def package(path):
    """The Debian package that has the file: its name and version, or nothing."""
    for candidate in dict.fromkeys([path, os.path.realpath(path), path.removeprefix("/usr"), os.path.realpath(path).removeprefix("/usr")]):
        line = output("dpkg-query", "-S", candidate).split("\n")[0]
        if ": " in line:
            name = line.split(": ")[0].split(":")[0].split(",")[0]
            return name, output("dpkg-query", "-W", "-f", "${Version}", name).strip()
    return None


def debian(name, release, how):
    architecture = output("dpkg", "--print-architecture").strip()
    return {
        "type": "library", "bom-ref": f"deb:{name}", "name": name, "version": release,
        "purl": f"pkg:deb/debian/{name}@{release}?arch={architecture}",
        "properties": [{"name": "sluice:linked", "value": how}],
    }


# The toolchain's own libraries have its version.
swift = re.search(r"Swift version (\S+)", output("swift", "--version")).group(1)


def toolchain(name, how):
    return {
        "type": "library", "bom-ref": f"swift:{name}", "name": name, "version": swift, "purl": f"pkg:generic/swift/{name}@{swift}",
        "licenses": [{"license": {"id": "Apache-2.0"}}], "properties": [{"name": "sluice:linked", "value": how}],
    }


components = {}

# Loaded at run time.
for program in names:
    path = os.path.join(programs, program)
    needed = re.findall(r"NEEDED\s+(\S+)", output("objdump", "-p", path))
    for library in re.findall(r"=> (/\S+)", output("ldd", path)):
        # Other libraries are dependencies of these.
        if os.path.basename(library) not in needed:
            continue
        found = package(library)
        if not found and "/swift/" in library:
            base = os.path.basename(library)
            components[f"swift:{base}"] = toolchain(base, "at run time")
            continue
        if not found:
            sys.exit(f"linked: no package has {library}")
        components[f"deb:{found[0]}"] = debian(*found, "at run time")

# Linked into the programs.
archives = set()
for program in names:
    with open(os.path.join(maps, f"{program}.map"), encoding="utf-8", errors="replace") as file:
        archives.update(re.findall(r"(/[^\s(]+\.a)\b", file.read()))
for archive in sorted(archives):
    real = os.path.realpath(archive)
    base = os.path.basename(archive).removeprefix("lib").removesuffix(".a")
    if "/swift_static/" in archive or "/swift/" in archive:
        components[f"swift:{base}"] = toolchain(base, "statically")
        continue
    found = package(real)
    if found:
        components[f"deb:{found[0]}"] = debian(*found, "statically")

# Compiled in: header-only libraries.
for header in ["/usr/include/toml++/toml.h", "/usr/include/xxhash.h"]:
    found = package(header)
    if found:
        components[f"deb:{found[0]}"] = debian(*found, "compiled in, headers alone")

when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"])))
hashes = {name: digest(os.path.join(programs, name)) for name in names}
root = {
    "type": "application", "bom-ref": "sluice", "name": "sluice", "version": version,
    "licenses": [{"license": {"id": "Apache-2.0"}}],
    "components": [
        {"type": "file", "bom-ref": f"file:{name}", "name": name, "hashes": [{"alg": "SHA-256", "content": hashes[name]}]} for name in names
    ],
}
if homepage:
    root["externalReferences"] = [{"type": "website", "url": homepage}]
json.dump(
    {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        # The same programs have the same list.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, 'sluice:' + ''.join(hashes.values()))}",
        "metadata": {"timestamp": when, "component": root},
        "components": [components[key] for key in sorted(components)],
        "dependencies": [{"ref": "sluice", "dependsOn": sorted(components)}],
    }, sys.stdout, indent=2, sort_keys=True)
print()
