#!/usr/bin/env bash
# Builds the extension under ASan and UBSan and runs the Python tests of the native core on it.
set -euo pipefail
python=$1
site=build/asan-site
rm -rf $site
ELASTIC_RANK_SANITIZE="address;undefined" ELASTIC_RANK_CUDA=OFF $python -m pip install -q --no-deps \
  --no-build-isolation --target $site -C build-dir=build/asan-extension -C cmake.build-type=RelWithDebInfo \
  -C install.strip=false .
# The interpreter leaks by design, so leaks are looked for in the native tests instead.
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1
export LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libubsan.so)"
# The editable install's finder comes before every path; it is taken out where this one is meant.
cat > $site/sitecustomize.py <<'PY'
import sys

sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "ScikitBuildRedirectingFinder"]
PY
export PYTHONPATH=$site
$python - <<'PY'
import elastic_rank._native as native
assert "asan-site" in native.__file__, native.__file__
PY
$python -m pytest -q tests/unit tests/regressions \
  -k "topk or scorers or cascade or requests or latency_sketch or segments or share or uplift" \
  --deselect tests/unit/test_package.py "${@:2}"
