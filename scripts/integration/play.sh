# shellcheck shell=bash
# Plays scenarios one after the other. `say` is the caller's.

# SCENARIO...: leaves the names of those that fail in `failed`.
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
