// headway: the command line.
#include <cstdio>
#include <exception>
#include <new>

#include "base/error.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  CLI::App app(
      "A laboratory for designing language models and the kernels that train them, for AWS Trainium2.");
  app.name("headway");
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Help of all commands");
  using namespace headway::cli;
  add_phase1_command(app);
  add_data_command(app);
  add_rows_command(app);
  add_tokenizer_command(app);
  add_recipe_command(app);
  add_train_command(app);
  add_runs_command(app);
  add_report_command(app);
  add_eval_command(app);
  add_chip_command(app);
  add_kernel_command(app);
  add_bench_command(app);
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const headway::Error& error) {
    std::fprintf(stderr, "headway: %s\n", error.what());
    return error.exit_code();
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "headway: out of memory. Use a smaller device batch or model\n");
    return 5;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "headway: bug: %s\n", error.what());
    return 70;
  }
}
