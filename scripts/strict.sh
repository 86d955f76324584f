# Read by other scripts: the options of the build that checks, tests and documentation share. With other options it would start over.
# shellcheck shell=bash disable=SC2034
strict=(--scratch-path .build/strict -Xswiftc -warnings-as-errors)
