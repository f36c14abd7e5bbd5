// A gzip file's contents, for tests that read compressed references.
#pragma once

#include <zlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace headway::data {

inline std::string gunzip(const std::filesystem::path& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (!file) throw std::runtime_error("can't open " + path.string());
  std::string out;
  char block[1 << 16];
  int n;
  while ((n = gzread(file, block, sizeof block)) > 0) out.append(block, static_cast<std::size_t>(n));
  gzclose(file);
  if (n < 0) throw std::runtime_error("damaged " + path.string());
  return out;
}

}  // namespace headway::data
