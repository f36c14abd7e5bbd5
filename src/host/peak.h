// What this machine can do at most, for MFU.
#pragma once

#include "base/threads.h"

namespace headway::host {

// Float32 multiply-add throughput of all threads of the pool, FLOP/s, from registers: best of several short
// loops (about 0.1 s in all).
double measure_peak_flops(ThreadPool& pool);

}  // namespace headway::host
