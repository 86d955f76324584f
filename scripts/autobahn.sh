#!/bin/sh
# Installs the Autobahn test suite for WebSockets in the checkout, for Tests/SluiceWebSocketTests, and prints the program's path. Calling it again has no effect.
#
#   scripts/autobahn.sh
#
# It is installed in .build/autobahn. The suite is written for Python 2: release 0.8.2 runs with Python 2.7; 25.10.1 installs with Python 3, but fails at its first import.
# SLUICE_PYTHON2 names a Python 2.7 that isn't called python2.7; it needs pip, and a C compiler for two modules.
set -eu
cd "$(dirname "$0")/.."

folder=$PWD/.build/autobahn
python=${SLUICE_PYTHON2:-python2.7}

fail() {
  echo "autobahn.sh: $*" >&2
  exit 1
}

[ $# -eq 0 ] || fail "there are no options"
if [ ! -x "$folder/wstest" ]; then
  python=$("$python" -c 'import sys; print(sys.executable)' 2>/dev/null) || fail "Python 2.7 isn't installed; name it with SLUICE_PYTHON2"
  rm -rf "$folder.new"
  "$python" -m pip install --quiet --disable-pip-version-check --target "$folder.new" autobahntestsuite==0.8.2 autobahn==0.10.9 Twisted==20.3.0 klein==20.6.0 Tubes==0.2.1 \
    Automat==22.10.0 PyHamcrest==1.10.1 Werkzeug==1.0.1 attrs==21.4.0 constantly==15.1.0 cryptography==3.3.2 hyperlink==21.0.0 incremental==22.10.0 jinja2==2.11.3 pyopenssl==21.0.0 \
    service-identity==21.1.0 txaio==2.1.0 ujson==2.0.3 wsaccel==0.6.6 zope.interface==5.5.2 >&2 || fail "pip can't install autobahntestsuite 0.8.2"
  # Without this file Python 2 doesn't find the packages in the folder.
  : >"$folder.new/zope/__init__.py"
  cat >"$folder.new/wstest" <<END
#!/bin/sh
PYTHONPATH=\$(dirname "\$0") exec "$python" -c 'from autobahntestsuite.wstest import run; run()' "\$@"
END
  chmod +x "$folder.new/wstest"
  rm -rf "$folder"
  mv "$folder.new" "$folder"
fi
echo "$folder/wstest"
