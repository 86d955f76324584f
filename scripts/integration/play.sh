# shellcheck shell=bash
# Runs scenarios one after the other. The caller defines `say`.

# SCENARIO...: sets `failed` to the names of those that fail.
play() {
  local scenario start
  failed=()
  for scenario in "$@"; do
    start=$SECONDS
    if timeout --kill-after 60 600 "scripts/integration/$scenario.sh" </dev/null; then
      say "$scenario passed, $((SECONDS - start)) s"
    else
      say "$scenario FAILED"
      failed+=("$scenario")
    fi
  done
}
