#!/usr/bin/env bash
# Installs the wheel beside the peers, in an environment of its own, and runs the scorecard.
set -euo pipefail
venv=.venv-bench
[ -x $venv/bin/python ] || python3 -m venv $venv
$venv/bin/python -m pip install -q -U 'pip>=25.1'
$venv/bin/python -m pip install -q -r bench/peers/requirements.txt
$venv/bin/python -m pip install -q --force-reinstall --no-deps dist/*.whl
exec $venv/bin/python -m bench.scorecard "${1:-all}"
