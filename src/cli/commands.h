// The commands: one file each, each adding itself to the command line. A callback throws base/error.h
// exceptions; main() prints them and turns them into exit codes.
#pragma once

#include <CLI/CLI.hpp>

namespace headway::cli {

void add_phase1_command(CLI::App& app);
void add_data_command(CLI::App& app);
void add_rows_command(CLI::App& app);  // below `data`, after it
void add_tokenizer_command(CLI::App& app);
void add_recipe_command(CLI::App& app);
void add_train_command(CLI::App& app);
void add_runs_command(CLI::App& app);
void add_report_command(CLI::App& app);
void add_eval_command(CLI::App& app);
void add_chip_command(CLI::App& app);
void add_chip_validate(CLI::App& chip);  // below `chip`
void add_kernel_command(CLI::App& app);
void add_kernel_time(CLI::App& kernel);  // below `kernel`
void add_bench_command(CLI::App& app);
void add_bench_chip(CLI::App& bench);  // below `bench`
void add_bench_timeline(CLI::App& bench);  // below `bench`

}  // namespace headway::cli
