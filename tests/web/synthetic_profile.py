"""Profiles made up for the tests of the profile page: a tiled kernel of any length, every number a plain function of the
tile. Written as `headway kernel profile` writes them (docs/formats.md)."""

import json

ENGINES = ["tensor", "vector", "scalar", "gpsimd", "sync", "dma"]
CAUSES = ["nothing", "engine", "operand", "overwrite", "memory", "table", "queue", "meeting", "conflict", "edge"]
QUEUES = ["sync hardware", "scalar hardware", "gpsimd software"]
MEMORIES = ["sbuf", "psum", "private_hbm", "shared_hbm"]
OPERATIONS = [["dma_copy", "k_tile[128, 2048] <- k"], ["nc_matmul", "scores[128, 512] psum <- q, k_tile", 16777216],
              ["activation", "probs[128, 512] <- exp(scores)"], ["tensor_reduce", "row_sum[128, 1] <- probs"],
              ["nc_transpose", "probs_t[128, 512] psum <- probs"], ["tensor_copy", "probs_s[128, 512] <- probs_t"],
              ["iota", "mask[128, 512]"], ["dma_copy", "out <- acc[128, 512]"]]
SOURCES = ["", "attention.cc:41", "attention.cc:52", "attention.cc:55", "attention.cc:58", "attention.cc:61",
           "attention.cc:64", "attention.cc:70"]
DMA_LOAD, MATMUL, EXP, REDUCE, TRANSPOSE, COPY, IOTA, DMA_STORE = range(8)
TILE_EVENTS = 13


def deltas(values):
    return [value - before for value, before in zip(values, [0] + values[:-1])]


class Builder:
    def __init__(self):
        self.events = {name: [] for name in ("start", "busy", "latency", "engine", "operation", "source", "cause", "by",
                                             "transfer", "calibrated")}
        self.transfers = {name: [] for name in ("event", "queue", "mode", "from", "to", "descriptors", "descriptor_bytes",
                                                "bytes", "start", "length", "arrival", "engines")}
        self.free = [0] * len(ENGINES)
        self.last = [None] * len(ENGINES)
        self.queue_free = [0] * len(QUEUES)
        self.known = []  # when each event's result can be read

    def event(self, engine, operation, busy, latency, after=None, cause="operand"):
        start, by, why = self.free[engine], self.last[engine], "engine"
        if after is not None and self.known[after] >= start:
            start, by, why = self.known[after], after, cause
        index = len(self.known)
        if by is None:
            why = "nothing"
        for name, value in (("start", start), ("busy", busy), ("latency", latency), ("engine", engine),
                            ("operation", operation), ("cause", CAUSES.index(why)),
                            ("by", 0 if by is None else index - by), ("transfer", 0), ("calibrated", int(operation != IOTA))):
            self.events[name].append(value)
        self.events["source"].append([1, 2, 3, 4, 5, 6, 0, 7][operation])
        self.free[engine] = start + busy
        self.last[engine] = index
        self.known.append(start + busy + latency)
        return index

    def dma(self, engine, operation, queue, size, descriptor, load, after=None):
        event = self.event(engine, operation, 60, 0, after)
        start = max(self.known[event] + 900, self.queue_free[queue])
        length = 40 + size // 160
        self.queue_free[queue] = start + length // 2  # two are in flight
        for name, value in (("event", event), ("queue", queue), ("mode", 2 if queue < 2 else 1), ("from", 2 if load else 0),
                            ("to", 0 if load else 2), ("descriptors", size // descriptor), ("descriptor_bytes", descriptor),
                            ("bytes", size), ("start", start), ("length", length), ("arrival", 120), ("engines", 16)):
            self.transfers[name].append(value)
        self.events["transfer"][event] = len(self.transfers["event"])
        self.known[event] = start + length + 120
        return event


def profile(tiles, kernel="attention", chip="trn2", slow=1.0, advice=True, cores=1):
    """`tiles` tiles of 13 events each on every core; `slow` stretches the exponentials."""
    build = Builder()
    core_from = [0]
    ends = []
    for _ in range(cores):
        build.free = [0] * len(ENGINES)
        build.last = [None] * len(ENGINES)
        build.queue_free = [0] * len(QUEUES)
        acc = None
        loads = [build.dma(4, DMA_LOAD, 0, 131072, 4096, True) for _ in range(min(2, tiles))]
        for tile in range(tiles):
            load = loads[tile]
            products = [build.event(0, MATMUL, 213 if tile > 12 else 426, 64, load) for _ in range(4)]
            exps = [build.event(2, EXP, int((420 + 30 * (tile % 7)) * slow), 180, products[3]) for _ in range(2)]
            total = build.event(1, REDUCE, 270, 60, exps[1])
            transposed = build.event(0, TRANSPOSE, 220, 64, exps[1])
            build.event(1, COPY, 540 if tile % 5 else 300, 60, transposed)
            build.event(3, IOTA, 350, 0, total if tile % 3 == 0 else None, "edge")
            acc = build.event(1, REDUCE, 90, 60, total)
            if tile + 2 < tiles:
                loads.append(build.dma(4, DMA_LOAD, 0, 131072, 4096, True, products[3]))
            else:
                build.event(4, IOTA, 20, 0)
            build.dma(2 if tile % 2 else 3, DMA_STORE, 1 if tile % 2 else 2, 32768, 512, False, acc)
        core_from.append(len(build.known))
        ends.append(max(build.known[core_from[-2]:]))
    events, transfers = build.events, build.transfers
    total = max(ends)
    critical = []
    event = max(range(core_from[1]), key=lambda e: build.known[e])
    while True:
        critical.append(event)
        if events["by"][event] == 0:
            break
        event -= events["by"][event]
    critical.reverse()
    starts = list(events["start"])
    moves = sorted([(s, 1) for s in transfers["start"]] + [(s + n, -1) for s, n in zip(transfers["start"], transfers["length"])])
    level, hbm_time, hbm_value = 0, [], []
    for when, change in moves:
        level += change
        if hbm_time and hbm_time[-1] == when:
            hbm_value[-1] = 160e9 * level
        else:
            hbm_time.append(when)
            hbm_value.append(160e9 * level)
    step = max(1, total // max(4, 2 * tiles))
    sbuf_time = list(range(0, total, step))
    size = transfers["bytes"]
    busy = {engine: sum(b for b, e in zip(events["busy"], events["engine"]) if e == i) / cores
            for i, engine in enumerate(ENGINES)}
    flops = sum(OPERATIONS[o][2] for o in events["operation"] if o == MATMUL)
    read = sum(s for s, o in zip(size, transfers["from"]) if o == 2)
    figures = {"total_time": total * 1e-9, "launch_time": 7.6e-6, "latency": total * 1e-9 + 7.6e-6,
               "hardware_flops": flops + flops // 4, "transpose_flops": flops // 4, "mm_arithmetic_intensity": flops / sum(size),
               "peak_flops_bandwidth_ratio": 109.8, "mfu_estimated_percent": flops / (78.6e12 * total * 1e-9 * cores),
               "mfu_max_achievable_estimated_percent": 1.0, "mbu_estimated_percent": sum(size) / (716e9 * total * 1e-9)}
    for engine in ENGINES[:5]:
        figures[f"{engine}_engine_instruction_time"] = busy[engine] * 1e-9
        figures[f"{engine}_engine_active_time_percent"] = busy[engine] / total
        figures[f"{engine}_engine_instruction_count"] = events["engine"].count(ENGINES.index(engine))
    figures |= {"dma_active_time_percent": min(1.0, sum(transfers["length"]) / total / cores / 2),
                "dma_transfer_count": len(size), "dma_transfer_total_bytes": sum(size),
                "dma_transfer_average_bytes": sum(size) / len(size), "hbm_read_bytes": read,
                "hbm_write_bytes": sum(size) - read, "spill_save_bytes": 0, "sbuf_peak_bytes": 9437184,
                "throttle_active_time_percent": 0.021, "cc_op_time": None}
    us = total * 1e-9
    lines = []
    for number, source in enumerate(SOURCES):
        mine = [e for e, s in enumerate(events["source"]) if s == number]
        ends_of = dict(zip(critical, [starts[e] for e in critical[1:]] + [total]))
        lines.append({"source": source, "operations": "", "count": len(mine),
                      "time": sum(events["busy"][e] for e in mine) * 1e-9,
                      "critical": sum(ends_of[e] - starts[e] for e in mine if e in ends_of) * 1e-9})
    return {
        "format": "headway-profile", "version": 1, "kernel": kernel, "chip": chip, "core": "NeuronCore-v3",
        "generation": 3, "cores": cores, "arguments": ["q=bfloat16[512, 128]", "k=bfloat16[512, 128]", "causal=1"],
        "figures": figures, "figure_order": list(figures),
        "trust": {"low": us * 0.94, "high": us * 1.07, "documented": 0.31, "measured": 0.42, "fitted": 0.2,
                  "assumed": 0.07, "uncalibrated": tiles},
        "bound": {"by": "scalar", "name": "Scalar engine", "share": 0.74,
                  "reason": "ScalarE works 74 % of the time on exponentials; TensorE waits for it.",
                  "limits": [{"by": by, "name": f"{by} engine", "time": busy[by] * 1e-9, "share": busy[by] / total}
                             for by in ("scalar", "vector", "tensor")] +
                            [{"by": "dma_bandwidth", "name": "DMA bandwidth", "time": us * 0.2, "share": 0.2}]},
        "critical_path": [{"what": "scalar", "cause": "operand", "time": us * 0.55, "share": 0.55, "count": 2 * tiles},
                          {"what": "tensor", "cause": "operand", "time": us * 0.25, "share": 0.25, "count": tiles},
                          {"what": "dma transfer", "cause": "operand", "time": us * 0.12, "share": 0.12, "count": tiles},
                          {"what": "semaphores", "cause": "", "time": us * 0.08, "share": 0.08, "count": 3 * tiles}],
        "critical_events": deltas(critical),
        "advice": [{"id": "exponentials", "title": "Exponentials take 55 % of the time",
                    "text": "ScalarE computes all of them while VectorE is idle for a third of the time.",
                    "time": us * 0.2, "share": 0.2, "sources": ["attention.cc:52"]},
                   {"id": "small-descriptors", "title": "DMA descriptors of 512 B reach 20 % of the bandwidth",
                    "text": "Store rows that lie together, at least 2 KiB each.", "time": us * 0.06, "share": 0.06,
                    "sources": ["attention.cc:70"], "events": [[14, 1], [27, 1]] if tiles > 1 else []}] if advice else [],
        "warnings": ["SBUF is 91 % full"] if slow > 1 else [],
        "engines": ENGINES, "causes": CAUSES, "operations": OPERATIONS, "sources": SOURCES, "queues": QUEUES,
        "memories": MEMORIES, "modes": ["static", "software", "hardware"], "core_from": core_from,
        "events": events | {"start": deltas(starts)},
        "transfers": transfers | {"event": deltas(transfers["event"]), "start": deltas(transfers["start"])},
        "counters": [
            {"name": "SBUF", "core": 0, "unit": "B", "limit": 27262976, "time": deltas(sbuf_time),
             "value": [(4 + (7 * i) % 6) << 20 for i in range(len(sbuf_time))]},
            {"name": "PSUM", "core": 0, "unit": "B", "limit": 2097152, "time": deltas(sbuf_time),
             "value": [(1 + i % 4) << 18 for i in range(len(sbuf_time))]},
            {"name": "HBM read", "core": 0, "unit": "B/s", "limit": 716e9, "time": deltas(hbm_time), "value": hbm_value},
            {"name": "tensor clock", "core": 0, "unit": "1", "limit": 1, "time": [0, 8000], "value": [0.5, 1]}],
        "engine_figures": [], "lines": lines,
        "roofline": {"bandwidth": 716e9, "mfu_peak": 78.6e12, "dtype": "bfloat16",
                     "peaks": [{"dtype": "bfloat16", "flops": 78.6e12}, {"dtype": "float8", "flops": 157e12},
                               {"dtype": "float32", "flops": 19.7e12}]},
    }


def page(template, *profiles):
    """The page with these profiles in it."""
    marker = '<script type="application/json" id="headway-data">'
    assert template.count(marker) == 1
    data = json.dumps({"format": 1, "profiles": profiles}, separators=(",", ":")).replace("<", "\\u003c")
    return template.replace(marker, marker + data)
