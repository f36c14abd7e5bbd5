#!/usr/bin/env python3
"""NKI kernels in Python: Headway's package against triton-viz's interpreter (standard library only).

The kernels are triton-viz's own, its matmul and its tiled attention, unmodified, called with the same NumPy
arrays; every result is checked against NumPy's. Each side is a process that stays, and they take turns, case by
case. The last case, many tensor_copy of [1, 1] in one kernel, is for what an instruction costs beside its
elements: recording and execution together.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import interleave

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent
OWN, PEER = "headway", "triton-viz"
REMEDY = "a checkout of https://github.com/Deep-Learning-Profiling-Tools/triton-viz: --triton-viz FOLDER"
# How many times faster than the peer Headway is meant to be. None: shown, not compared.
WANTED = {
    "matmul 128x128x512": 20,
    "matmul 2048^3": 3,
    "matmul 4096^3": 4,
    "attention 2048^2": 5,
    "attention 4096^2": 5,
    "tensor_copy [1,1]": None,
}
# The threads of a side's BLAS go on spinning for a while after its last product.
SETTLE_SECONDS = 0.3


class Side:
    """A worker process: a line with a case in, a line with its seconds out."""

    def __init__(self, name, python, checkout, threads, cpus, nice):
        environment = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(interleave.TUNING + ("HEADWAY_", "NKI_", "NEURON_"))
        }
        environment |= {
            "OPENBLAS_NUM_THREADS": str(threads),
            "OMP_NUM_THREADS": str(threads),
            "HEADWAY_THREADS": str(threads),
        }
        environment.pop("PYTHONPATH", None)
        if name == OWN:
            environment["PYTHONPATH"] = str(REPOSITORY / "python")

        def settle():
            os.sched_setaffinity(0, cpus)
            os.nice(nice)

        self.name, self.cpus = name, cpus
        self.process = subprocess.Popen(
            [python, str(HERE / "nki" / "worker.py"), name, "--triton-viz", str(checkout)],
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=settle,
        )

    def turn(self, case):
        """The worker's answer, with "others": the share of the processors that other programs took meanwhile."""
        start, busy, own = time.monotonic(), interleave.busy_seconds(), self._processor_seconds()
        try:
            self.process.stdin.write(case + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.process.kill()
            reason = self.process.stderr.read().strip().splitlines() or ["no output"]
            raise interleave.Failed(f"exit code {self.process.wait()}: {reason[-1]}")
        answer = json.loads(line)
        if "failed" in answer:
            raise interleave.Failed(answer["failed"])
        others = interleave.busy_seconds() - busy - (self._processor_seconds() - own)
        answer["others"] = round(max(0.0, others) / ((time.monotonic() - start) * len(self.cpus)), 3)
        return answer

    def _processor_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(30)


def entry(turns):
    return {
        "median": statistics.median(t["seconds"] for t in turns),
        "best": min(t["best"] for t in turns),
        "runs": [t["seconds"] for t in turns],
        "error": max(t["error"] for t in turns),
        "others": [t["others"] for t in turns],
    }


def shown(seconds):
    return (
        f"{seconds * 1e6:8.2f} us"
        if seconds < 1e-3
        else f"{seconds * 1e3:8.2f} ms" if seconds < 1 else f"{seconds:8.3f} s "
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--headway", type=pathlib.Path, help="not used: the Python package is what is measured"
    )
    parser.add_argument("--triton-viz", type=pathlib.Path, metavar="FOLDER", help=REMEDY)
    parser.add_argument(
        "--python",
        default=str(REPOSITORY / "build" / "venv" / "bin" / "python"),
        help="the interpreter of both sides: NumPy and ml_dtypes (default: the environment that ./run makes)",
    )
    parser.add_argument("--peer-python", help="another one for triton-viz")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--case", action="append", choices=list(WANTED), help="only this one; may be given again"
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=0,
        metavar="SECONDS",
        help="wait up to so long before each turn for other programs to pause",
    )
    parser.add_argument("--nice", type=int, default=0)
    args = parser.parse_args()
    cpus = interleave.processors(args.threads)
    machine = interleave.machine()
    missing = {}
    if args.triton_viz is None or not (args.triton_viz / "triton_viz").is_dir():
        why = (
            "no checkout was given" if args.triton_viz is None else f"{args.triton_viz} is no checkout of it"
        )
        print(f"{PEER}: {why}; it, and its kernels, come with {REMEDY}", file=sys.stderr)
        missing[PEER] = why
    # The kernels are the peer's: without them only ours is left.
    names = [name for name in args.case or WANTED if not missing or WANTED[name] is None]
    checkout = args.triton_viz.resolve() if not missing else REPOSITORY
    sides = {OWN: Side(OWN, args.python, checkout, args.threads, cpus, args.nice)}
    if not missing:
        sides[PEER] = Side(PEER, args.peer_python or args.python, checkout, args.threads, cpus, args.nice)
    turns = {side: {name: [] for name in names} for side in sides}
    try:
        for round_ in range(args.runs):
            for name in names:
                for side in list(sides)[:: 1 if round_ % 2 == 0 else -1]:
                    time.sleep(SETTLE_SECONDS)
                    interleave.wait_for_quiet(cpus, args.patience)
                    try:
                        turn = sides[side].turn(name)
                    except interleave.Failed as error:
                        print(f"bench nki: {side}, {name}: {error}", file=sys.stderr)
                        return 1
                    turns[side][name].append(turn)
                    print(
                        f"round {round_ + 1}/{args.runs}  {name:<20} {side:<12} {shown(turn['seconds'])}"
                        f"  others {turn['others']:.0%}",
                        file=sys.stderr,
                        flush=True,
                    )
    finally:
        for side in sides.values():
            side.close()

    entries = {side: {name: entry(all_) for name, all_ in cases.items()} for side, cases in turns.items()}
    print(
        f"nki: {args.runs} interleaved turns a side on {len(cpus)} processors ({machine['processor']}); "
        f"ratio: the time of {PEER} over Headway's, more than 1 is ahead"
    )
    ratios = {}
    for name in names:
        own = entries[OWN][name]
        line = f"  {name:<20} headway {shown(own['median'])} (best {shown(own['best'])})"
        if PEER in entries:
            peer = entries[PEER][name]
            ratios[name] = {key: peer[key] / own[key] for key in ("median", "best")} | {
                "wanted": WANTED[name]
            }
            line += (
                f"   {PEER} {shown(peer['median'])} (best {shown(peer['best'])})"
                f"   ratio {ratios[name]['median']:.2f} by medians, "
                f"{ratios[name]['best']:.2f} by best runs"
                + (f", wanted {WANTED[name]}" if WANTED[name] else "")
            )
        print(line + f"   others {statistics.mean(own['others']):.0%}")
    compared = [r for r in ratios.values() if r["wanted"]]
    ratio = {key: min(r[key] for r in compared) for key in ("median", "best")} if compared else None
    print(
        json.dumps(
            {
                "bench": "nki",
                "own": entries.pop(OWN),
                "peers": entries,
                "peers_missing": sorted(missing),
                "ratio": ratio,
                "ratios": ratios,
                "machine": machine,
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
