// The CPU as a Backend: variables in memory, graphs compiled to a list of kernel calls over one arena.
#pragma once

#include <memory>

#include "base/threads.h"
#include "graph/executable.h"
#include "host/kernel.h"

namespace headway::host {

enum class Precision {
  fast,       // float32, fused kernels
  reference,  // float64, plain loops
};

// `pool` must outlive the backend and its executables. `kernels` replaces the instance's kernels (tests).
std::unique_ptr<graph::Backend> make_backend(std::shared_ptr<const graph::Variables> variables,
                                             ThreadPool& pool, Precision precision, Options options = {});
std::unique_ptr<graph::Backend> make_backend(std::shared_ptr<const graph::Variables> variables,
                                             ThreadPool& pool, bool doubles, Kernels kernels,
                                             Options options = {});

}  // namespace headway::host
