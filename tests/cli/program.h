// Runs the headway program as a user would.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files.h"

namespace headway::test {

struct Finished {
  int code = -1;       // exit status; -1 when a signal ended it
  std::string output;  // stdout and stderr

  // The last line, which --json makes an object.
  nlohmann::json json() const {
    std::string text = output;
    text.erase(text.find_last_not_of('\n') + 1);
    return nlohmann::json::parse(text.substr(text.rfind('\n') + 1));
  }
  bool says(const std::string& words) const { return output.find(words) != std::string::npos; }
};

// `arguments` as in a shell.
inline Finished headway(const std::string& arguments) {
  const std::string command = std::string("'") + HEADWAY_PROGRAM + "' " + arguments + " 2>&1 </dev/null";
  Finished finished;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  char buffer[4096];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    finished.output.append(buffer, n);
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) finished.code = WEXITSTATUS(status);
  return finished;
}

// A corpus of this repository's own documents, a tokenizer of 512 ids, and a recipe for them, made once per
// program.
class Workplace {
 public:
  static Workplace& get() {
    static Workplace place;
    return place;
  }
  std::filesystem::path path(const std::string& name) const { return root_ / name; }
  std::string corpus() const { return path("corpus").string(); }
  std::string tokenizer() const { return path("small.tiktoken").string(); }
  std::string sources() const {
    return "--corpus " + corpus() + " --tokenizer " + tokenizer() + " --runs " + path("runs").string();
  }

  // Writes a recipe with these lines replaced ("steps = 30").
  std::filesystem::path recipe(const std::string& name, const std::string& budget,
                               const std::string& model_extra = "", const std::string& lr = "0.02",
                               int vocab = 512) const {
    const std::filesystem::path file = path(name + ".toml");
    FileSystem::real().write_atomically(
        file,
        "[model]\ndepth = 2\nwidth = 32\nheads = 2\nvocab = " + std::to_string(vocab) + "\nsequence = 64\n" +
            model_extra + "[optimizer]\n[optimizer.matrix]\nlr = " + lr +
            "\n[optimizer.embedding]\nlr = 0.1\n[optimizer.head]\nlr = 0.01\n[optimizer.scalar]\nlr = 0.05\n"
            "[schedule]\nwarmup_steps = 3\n[data]\nbatch_tokens = 512\ndevice_batch = 8\nbuffer = 20\n"
            "[launch]\nprocesses = 1\n[budget]\n" +
            budget + "\n");
    return file;
  }

 private:
  Workplace() {
    std::string name = (std::filesystem::temp_directory_path() / "headway-cli-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    root_ = name;
    const std::filesystem::path text = path("text");
    std::filesystem::create_directories(text);
    int i = 0;
    for (const char* folder : {"docs", "src/graph", "src/base", "src/data", "src/train"}) {
      for (const auto& entry :
           std::filesystem::recursive_directory_iterator(std::filesystem::path(HEADWAY_ROOT) / folder)) {
        if (!entry.is_regular_file() || entry.path().extension() == ".png") continue;
        std::filesystem::copy_file(entry.path(), text / (std::to_string(1000 + i++) + ".txt"));
      }
    }
    for (const std::string& arguments :
         {"data prepare " + text.string() + " --out " + corpus(),
          "tokenizer train --corpus " + corpus() + " --out " + tokenizer() + " --vocab 512"}) {
      const Finished finished = headway(arguments);
      if (finished.code != 0) throw std::runtime_error(arguments + ": " + finished.output);
    }
  }
  ~Workplace() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  std::filesystem::path root_;
};

}  // namespace headway::test
