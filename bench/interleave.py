"""What the bench drivers share: runs Headway and its peers in turns and compares medians.

A run is a command that prints one JSON object as its last line. Runs are interleaved (own, peer, peer, own, ...), each
round in another order, because a shared machine changes speed from minute to minute: what one meets, all meet.
"""

import dataclasses
import glob
import json
import os
import statistics
import subprocess
import sys
import time

# Settings that change the speed of numeric libraries. All runs start without those the caller happens to have, so
# that only what is written in a Contender counts.
TUNING = ("OMP_", "KMP_", "GOMP_", "OPENBLAS_", "GOTO_", "NVPL_", "MKL_", "BLIS_", "DNNL_", "ONEDNN_", "MALLOC_",
          "GLIBC_TUNABLES", "LD_LIBRARY_PATH", "LD_PRELOAD", "TORCH_")


@dataclasses.dataclass
class Contender:
    name: str
    command: list
    environment: dict = dataclasses.field(default_factory=dict)
    # What would have to be done to have it, when it is missing.
    remedy: str = ""


class Failed(Exception):
    """A run that gave no figure."""


def library_folder(name):
    """A Debian library folder such as /usr/lib/x86_64-linux-gnu/NAME, or None."""
    found = sorted(glob.glob(f"/usr/lib/*/{name}"))
    return found[0] if found else None


def processors(count):
    """The first `count` processors that this process may use."""
    return sorted(os.sched_getaffinity(0))[:count]


def busy_seconds():
    """Processor seconds used by everything on this machine so far."""
    with open("/proc/stat") as stat:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, stat.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def wait_for_quiet(cpus, patience):
    """Returns when others have used less than a tenth of the processors for 3 s, or after `patience` seconds."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        before = busy_seconds()
        time.sleep(3)
        if busy_seconds() - before < 0.1 * 3 * len(cpus):
            return


def run_once(contender, cpus, timeout):
    """The JSON object that the run printed, with "others": the share of `cpus` that other programs used meanwhile."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(TUNING)} | contender.environment
    start, busy, own = time.monotonic(), busy_seconds(), os.times()
    try:
        done = subprocess.run(contender.command, env=environment, capture_output=True, text=True, timeout=timeout,
                              preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    except OSError as error:
        raise Failed(str(error)) from None
    except subprocess.TimeoutExpired:
        raise Failed(f"no result after {timeout} s") from None
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        reason = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise Failed(f"exit code {done.returncode}: {reason}")
    now = os.times()
    own_seconds = now.children_user + now.children_system - own.children_user - own.children_system
    others = max(0.0, busy_seconds() - busy - own_seconds) / ((time.monotonic() - start) * len(cpus))
    try:
        return json.loads(lines[-1]) | {"others": round(others, 3)}
    except json.JSONDecodeError:
        raise Failed(f"its last line is no JSON: {lines[-1][:120]}") from None


def interleave(contenders, rounds, figure, cpus, timeout=600, patience=0, required=None, log=sys.stderr):
    """Runs each contender `rounds` times, each when the machine is quiet or after `patience` seconds.

    Returns ({name: [results]}, {name: why it gave nothing}), early when the contender named `required` fails.
    """
    results, failures = {c.name: [] for c in contenders}, {}
    for r in range(rounds):
        for contender in contenders[r % len(contenders):] + contenders[:r % len(contenders)]:
            if contender.name in failures:
                continue
            wait_for_quiet(cpus, patience)
            try:
                result = run_once(contender, cpus, timeout)
                value = float(result[figure])
            except (Failed, KeyError) as error:
                why = f"its result has no {figure}" if isinstance(error, KeyError) else str(error)
                failures[contender.name] = why
                results.pop(contender.name)
                print(f"{contender.name}: {why}", file=log, flush=True)
                if contender.name == required:
                    return results, failures
                continue
            results[contender.name].append(result)
            print(f"round {r + 1}/{rounds}  {contender.name:<32} {value:12,.1f} {figure}  "
                  f"others {result['others']:.0%}", file=log, flush=True)
    return results, failures


def summary(results, figure, higher_is_better=True):
    values = [float(result[figure]) for result in results]
    return {"median": statistics.median(values), "best": (max if higher_is_better else min)(values), "runs": values,
            "others": [result["others"] for result in results]}


def machine():
    model = "unknown processor"
    try:
        with open("/proc/cpuinfo") as info:
            model = next((line.split(":", 1)[1].strip() for line in info if line.startswith("model name")), model)
    except OSError:
        pass
    return {"processor": model, "processors": os.cpu_count(), "load": os.getloadavg()[0],
            "date": time.strftime("%Y-%m-%d", time.gmtime())}


def report(bench, own, peers, rounds, figure, cpus, missing=None, higher_is_better=True, details=(), timeout=600,
           patience=0):
    """Runs everything, prints the table and the final JSON line; returns the exit code.

    `own` may be None (measure the peers only). `missing`: {peer name: (why, remedy)} known beforehand; peers whose runs
    fail join them. `details`: further keys of a result to show beside the figures.
    """
    contenders = ([own] if own else []) + peers
    before = machine()
    results, failures = interleave(contenders, rounds, figure, cpus, timeout, patience,
                                   own.name if own else None)
    if own and own.name in failures:
        print(f"bench {bench}: {' '.join(map(str, own.command))}: {failures[own.name]}", file=sys.stderr)
        return 1
    missing = dict(missing or {})
    missing |= {peer.name: (failures[peer.name], peer.remedy) for peer in peers if peer.name in failures}

    def entry(name):
        last = results[name][-1]
        return summary(results[name], figure, higher_is_better) | {key: last[key] for key in details if key in last}

    own_entry = entry(own.name) if own else None
    peer_entries = {peer.name: entry(peer.name) for peer in peers if peer.name in results}
    ratio = None
    if own_entry and peer_entries:
        best = max if higher_is_better else min
        ratio = {key: own_entry[key] / best(p[key] for p in peer_entries.values()) for key in ("median", "best")}
        if not higher_is_better:  # always: more than 1 means that Headway is ahead
            ratio = {key: 1 / value for key, value in ratio.items()}

    print(f"{bench}: {figure}, {rounds} interleaved runs each on {len(cpus)} of {before['processors']} processors "
          f"({before['processor']}); others: processor time that other programs took meanwhile")
    for name, e in ([("headway", own_entry)] if own_entry else []) + list(peer_entries.items()):
        extra = "  ".join(f"{key} {e[key]}" for key in details if key in e)
        print(f"  {name:<32} median {e['median']:12,.1f}   best {e['best']:12,.1f}   "
              f"others {statistics.mean(e['others']):4.0%}  {extra}")
    for name, (why, remedy) in missing.items():
        print(f"  {name:<32} missing: {why}" + (f" ({remedy})" if remedy else ""))
    if ratio:
        print(f"  headway / best peer: {ratio['median']:.2f} by medians, {ratio['best']:.2f} by best runs")
    print(json.dumps({"bench": bench, "own": own_entry, "peers": peer_entries, "peers_missing": sorted(missing),
                      "ratio": ratio, "machine": before}))
    return 0
