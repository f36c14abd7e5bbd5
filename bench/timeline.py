#!/usr/bin/env python3
"""How fast `headway` finds the time of a program on the chip: instructions a second on one thread, bytes an instruction
(standard library only). No peer computes the same: the ratio is against the aim of a million a second."""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

import interleave

AIM = 1e6  # instructions a second


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--headway", type=pathlib.Path, default=pathlib.Path("build/headway"))
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    own = interleave.Contender("headway", [str(args.headway), "bench", "timeline", "--json"])
    results, failures = interleave.interleave([own], args.runs, "instructions_per_second", interleave.processors(1),
                                              required=own.name)
    if failures:
        print(f"bench timeline: {failures[own.name]}", file=sys.stderr)
        return 1
    runs = results[own.name]
    speeds = [run["instructions_per_second"] for run in runs]
    own_entry = {"instructions_per_second": statistics.median(speeds),
                 "bytes_per_instruction": max(run["bytes_per_instruction"] for run in runs)}
    print(f"timeline: the slowest of three programs {own_entry['instructions_per_second'] / 1e6:.2f} million instructions a "
          f"second (median of {args.runs} runs, best {max(speeds) / 1e6:.2f}), at most "
          f"{own_entry['bytes_per_instruction']:.0f} bytes an instruction")
    print(json.dumps({"bench": "timeline", "own": own_entry, "peers": {}, "peers_missing": [],
                      "ratio": {"median": statistics.median(speeds) / AIM, "best": max(speeds) / AIM},
                      "machine": interleave.machine()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
