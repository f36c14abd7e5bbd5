// What a kernel is called with on the command line: `--arg x=bf16[4096,128]` gives an input, `--arg causal=1`
// an attribute.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "kernels/kernel.h"

namespace headway::cli {

// NAME=DTYPE[EXTENT,...] is a parameter, NAME=VALUE a text.
struct Argument {
  std::string name;
  std::variant<kernels::Parameter, std::string> value;
};
// Throws InputError naming the argument for what is neither, for a dtype that no tensor has and for extents
// below 1.
Argument parse_argument(const std::string& arg);

struct KernelCall {
  std::vector<kernels::Parameter> inputs;  // the kernel's own where nothing was said
  kernels::Attributes attributes;
};

// Throws InputError naming the argument for what isn't NAME=DTYPE[EXTENT,...] or NAME=NUMBER, and for inputs
// that the kernel doesn't have. Whether it knows the attributes shows when it is recorded.
KernelCall kernel_call(const kernels::Kernel& kernel, const std::vector<std::string>& args);

// "q=bfloat16[512, 128]"
std::string to_text(const kernels::Parameter& parameter);

}  // namespace headway::cli
