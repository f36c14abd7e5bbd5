#include "train/step_log.h"

#include <cerrno>
#include <cstring>
#include <sstream>

#include "base/error.h"
#include "base/files.h"

namespace headway::train {

StepLog::StepLog(const std::filesystem::path& path, std::int64_t last) : path_(path) {
  if (std::filesystem::exists(path)) {
    std::string kept;
    std::istringstream in(read_file(path));
    for (std::string line; std::getline(in, line);) {
      const nlohmann::json step = nlohmann::json::parse(line, nullptr, false);
      if (!step.is_object() || !step.contains("step") || step["step"].get<std::int64_t>() > last) break;
      kept += line + "\n";
    }
    FileSystem::real().write_atomically(path, kept);
  }
  file_ = std::fopen(path.c_str(), "a");
  if (!file_) throw SystemError(path.string(), std::string("opening failed: ") + std::strerror(errno));
}

StepLog::~StepLog() {
  if (file_) std::fclose(file_);
}

void StepLog::append(const nlohmann::json& line) {
  const std::string text = line.dump() + "\n";
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size() || std::fflush(file_) != 0) {
    throw SystemError(path_.string(), std::string("writing failed: ") + std::strerror(errno),
                      "Free some space; the last checkpoint is untouched");
  }
}

}  // namespace headway::train
