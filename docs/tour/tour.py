"""safepallas in a minute: mypy refuses a wrong kernel, and a right one runs on four devices.

`python docs/tour/tour.py` needs mypy beside safepallas, and neither a TPU nor several devices.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
WRONG = HERE / "wrong_kernel.py"
EXAMPLE = HERE.parent / "examples" / "ring_all_gather.py"


def main() -> None:
    print(f"1. A wrong kernel, {WRONG.name}:\n\n{WRONG.read_text()}\n   mypy --strict says:\n")
    mypy = [sys.executable, "-m", "mypy", "--strict", WRONG.name]
    answer = subprocess.run(mypy, cwd=HERE, text=True, capture_output=True, check=False)
    print(answer.stdout + answer.stderr)
    if answer.returncode != 1:
        raise SystemExit(f"mypy was to refuse {WRONG.name}, and ended with {answer.returncode}")
    print(f"2. A right kernel, {EXAMPLE.name}, simulated with the race detector on:\n", flush=True)
    subprocess.run([sys.executable, EXAMPLE], check=True, timeout=300)


if __name__ == "__main__":
    main()
