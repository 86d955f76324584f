# Read by other scripts: the options of the build that checks, tests and documentation share. With other options it would start over.
# No index for editors: a build is an eighth quicker without.
# shellcheck shell=bash disable=SC2034
strict=(--scratch-path .build/strict --disable-index-store -Xswiftc -warnings-as-errors)
