// Where the text of a corpus comes from: the user's files, or the documentation that Debian packages install.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace headway::data {

struct TextSource {
  std::string name;
  std::string package;  // empty for users' own files
  std::string licence;
  std::vector<std::filesystem::path> files;  // in the order they are read
};

// Prose under free licences from the packages anarchism, python3.11-doc, postgresql-doc-15, debian-handbook
// and rust-doc, found below `root`. Throws InputError naming the packages that are missing and the command
// that installs them.
std::vector<TextSource> debian_sources(const std::filesystem::path& root = "/usr/share/doc");

// One source per path, in the given order: the file itself, or all files in the folder and below whose names
// have a known ending (data/documents.h), sorted by path, names that begin with a dot left out. Throws
// InputError when a path doesn't exist, is a file of unknown kind, or a folder without any known one.
std::vector<TextSource> user_sources(const std::vector<std::filesystem::path>& paths);

}  // namespace headway::data
