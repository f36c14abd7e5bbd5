#!/usr/bin/env python3
"""The simulated chip against NumPy: whole kernels, every rule of the hardware checked (standard library only).

Three cases: a tiled float32 matmul (4096^3 in tiles of 128 x 128 x 512), flash attention (4096 x 4096, d 128), and the cost of one small
instruction (tensor_copy of 128 x 8 float32) beyond the memcpy of its bytes. NumPy runs over the same tiles (and, for
orientation, on whole matrices).
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

import interleave

HERE = pathlib.Path(__file__).resolve().parent
CASES = ("matmul_seconds", "attention_seconds")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--headway", type=pathlib.Path, default=pathlib.Path("build/headway"))
    parser.add_argument("--venv", type=pathlib.Path, default=pathlib.Path("~/.cache/headway/venv-numpy").expanduser(),
                        help="an environment with NumPy; without it, /usr/bin/python3")
    parser.add_argument("--install", action="store_true", help="make that environment first (numpy 2.4.6 from PyPI)")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--patience", type=float, default=0, metavar="SECONDS",
                        help="wait up to so long before each run for other programs to pause")
    args = parser.parse_args()
    if args.install:
        subprocess.run([sys.executable, "-m", "venv", str(args.venv)], check=True)
        subprocess.run([str(args.venv / "bin" / "pip"), "install", "numpy==2.4.6"], check=True)
    python = args.venv / "bin" / "python"
    python = str(python) if python.exists() else "/usr/bin/python3"
    numpy = [python, str(HERE / "peers" / "chip_numpy.py"), "--size", str(args.size)]
    threads = {"OPENBLAS_NUM_THREADS": str(args.threads), "OMP_NUM_THREADS": str(args.threads)}
    remedy = "`./run bench chip --install` makes it"
    own = interleave.Contender("headway", [str(args.headway), "bench", "chip", "--threads", str(args.threads), "--size",
                                           str(args.size), "--json"])
    peers = [interleave.Contender("numpy over tiles", numpy, threads, remedy),
             interleave.Contender("numpy on whole matrices", numpy + ["--whole"], threads, remedy)]
    cpus = interleave.processors(args.threads)
    results, failures = interleave.interleave([own] + peers, args.runs, CASES[0], cpus, patience=args.patience,
                                              required=own.name)
    if own.name in failures:
        print(f"bench chip: {failures[own.name]}", file=sys.stderr)
        return 1

    entries = {name: {case: interleave.summary(runs, case, higher_is_better=False) for case in CASES}
               for name, runs in results.items()}
    copies = [run["copy_microseconds"] for run in results[own.name]]
    tiles, whole = peers[0].name, peers[1].name
    ratios = {}
    print(f"chip: seconds, {args.runs} interleaved runs each on {len(cpus)} processors; ratio: NumPy's time over Headway's, "
          "more than 1 is ahead")
    for case in CASES:
        for name, entry in entries.items():
            e = entry[case]
            line = f"  {case:<18} {name:<24} median {e['median']:8.3f}   best {e['best']:8.3f}   others {statistics.mean(e['others']):4.0%}"
            if name != own.name:
                ratio = {key: e[key] / entries[own.name][case][key] for key in ("median", "best")}
                line += f"   ratio {ratio['median']:.2f} by medians, {ratio['best']:.2f} by best runs"
                if name == tiles:
                    ratios[case] = ratio
            print(line)
    print(f"  tensor_copy of 128 x 8 float32: {statistics.median(copies):.3f} us beyond its memcpy, {min(copies):.3f} at best")
    ratio = {key: min(r[key] for r in ratios.values()) for key in ("median", "best")} if ratios else None
    print(json.dumps({"bench": "chip", "own": entries.pop(own.name) | {"copy_microseconds": statistics.median(copies)},
                      "peers": entries, "peers_missing": sorted(failures), "ratio": ratio, "ratios": ratios,
                      "machine": interleave.machine()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
