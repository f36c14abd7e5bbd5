// steps.jsonl: one line a step, readable while the run goes on.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace headway::train {

class StepLog {
 public:
  // Opens the log for appending after step `last`: lines of later steps, and a torn last line, are dropped
  // first.
  StepLog(const std::filesystem::path& path, std::int64_t last);
  ~StepLog();
  StepLog(const StepLog&) = delete;
  StepLog& operator=(const StepLog&) = delete;

  // One line, handed to the system at once. Throws SystemError when the disk is full.
  void append(const nlohmann::json& line);

 private:
  std::filesystem::path path_;
  std::FILE* file_ = nullptr;
};

}  // namespace headway::train
