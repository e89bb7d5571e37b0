#!/usr/bin/env bash
# A wheel, as users get it: installed without Numba and without a compiler, read-only, for a user without a home.
# Every class of benchmarks/start.py must play its first round, and take at most 4 times as long as `import numpy`.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON="${PYTHON:-python3}"
scratch="$(mktemp -d)"
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
"$PYTHON" -m pip wheel --quiet --no-deps --wheel-dir "$scratch" .
wheel="$(ls "$scratch"/thalweg-*.whl)"
case "$wheel" in *-py3-none-any.whl) echo "the wheel has no library: $wheel"; exit 1 ;; *-py3-none-*.whl) ;; *) echo "$wheel"; exit 1 ;; esac
"$PYTHON" -m venv "$scratch/env"
"$scratch/env/bin/python" -m pip install --quiet "$wheel[sklearn]"
if "$scratch/env/bin/python" -c 'import numba' 2>/dev/null; then echo 'Numba was installed'; exit 1; fi
cp benchmarks/start.py "$scratch/start.py"
chmod -R a+rX "$scratch"
chmod -R a-w "$scratch/env/lib"
cat > "$scratch/first.py" <<'PY'
import json, subprocess, sys, time
sys.path.insert(0, sys.argv[1])
import start
worst = 0.0
for name in start.ROUNDS:
    reports = []
    for _ in range(3):
        call = [sys.executable, sys.argv[1] + "/start.py", repr(time.time()), name]
        reports.append(json.loads(subprocess.run(call, capture_output=True, text=True, check=True).stdout))
    best = min(reports, key=lambda report: report["processor"])
    ratio = best["processor"] / min(report["numpy"] for report in reports)
    print(f"{name:20s} {best['processor']:.2f} s of processor time, {ratio:.1f} x import numpy")
    assert not best["numba"], "Numba was loaded"
    if name not in ("TrackingRegressor", "StreamingPCA"):  # scikit-learn itself takes longer to import
        worst = max(worst, ratio)
print(f"worst {worst:.1f} x import numpy")
PY
run=("$scratch/env/bin/python" "$scratch/first.py" "$scratch")
nobody=("$(command -v setpriv || true)" --reuid 65534 --regid 65534 --clear-groups)
if [ "$(id -u)" = 0 ] && "${nobody[@]}" "$scratch/env/bin/python" -c \
    'import subprocess, sys; subprocess.run([sys.executable, "-c", ""], check=True)' 2>/dev/null; then
    run=("${nobody[@]}" "${run[@]}")  # where the interpreter can be read by everybody
fi
cd /
echo "as user $("${run[@]:0:${#run[@]}-2}" -c 'import os; print(os.getuid())'), without a home, a compiler and Numba:"
env -i PATH=/nonexistent HOME=/nonexistent "${run[@]}"
