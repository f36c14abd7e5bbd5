#include "data/sources.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/error.h"
#include "data/documents.h"
#include "data/utf8.h"

namespace headway::data {
namespace {

namespace fs = std::filesystem;

// Folders of a package's documentation (below /usr/share/doc) and which of their pages are prose. `skip` are
// beginnings of file names: indexes, listings, change logs, and what is only there once more.
struct PackageProse {
  std::string_view package;
  std::string_view name;
  std::string_view licence;
  std::vector<std::string_view> folders;
  std::vector<std::string_view> skip;
};

const std::vector<PackageProse>& packages() {
  static const std::vector<PackageProse> all = {
      {"anarchism",
       "An Anarchist FAQ",
       "GPL-2.0-or-later",
       {"anarchism/html"},
       {"index.html", "alinks", "biblio"}},
      {"debian-handbook",
       "The Debian Administrator's Handbook",
       "GPL-2.0-or-later OR CC-BY-SA-3.0",
       {"debian-handbook/html/en-US"},
       {"index.html"}},
      {"postgresql-doc-15",
       "PostgreSQL 15 documentation",
       "PostgreSQL",
       {"postgresql-doc-15/html"},
       {"bookindex", "index.html", "release", "errcodes-appendix", "sql-keywords", "sql-commands", "features",
        "biblio", "legalnotice", "catalog-", "view-pg", "infoschema-", "ecpg-sql", "spi-", "libpq-"}},
      {"python3.11-doc",
       "Python 3.11 documentation",
       "PSF-2.0 (examples: 0BSD)",
       {"python3.11/html/tutorial", "python3.11/html/howto", "python3.11/html/faq",
        "python3.11/html/whatsnew", "python3.11/html/reference", "python3.11/html/using",
        "python3.11/html/extending", "python3.11/html/distributing", "python3.11/html/installing",
        "python3.11/html/install", "python3.11/html/library"},
       {"index.html", "changelog"}},
      {"rust-doc",
       "Rust books and reference",
       "MIT OR Apache-2.0",
       {"rust-doc/html/book", "rust-doc/html/edition-guide", "rust-doc/html/embedded-book",
        "rust-doc/html/nomicon", "rust-doc/html/reference", "rust-doc/html/rust-by-example",
        "rust-doc/html/rustc", "rust-doc/html/rustdoc", "rust-doc/html/unstable-book"},
       {"print.html", "index.html", "SUMMARY", "README", "grammar"}},
  };
  return all;
}

bool begins_with_one_of(std::string_view name, const std::vector<std::string_view>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view b) { return name.starts_with(b); });
}

// Pages directly in `folder`, through links (Debian moves parts of packages), sorted by name.
std::vector<fs::path> pages_in(const fs::path& folder, const std::vector<std::string_view>& skip) {
  std::vector<fs::path> pages;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".html") || begins_with_one_of(name, skip)) continue;
    if (entry.is_regular_file(error)) pages.push_back(entry.path());
  }
  std::sort(pages.begin(), pages.end());
  return pages;
}

// Appends the files below `folder` that may hold documents. `seen` are folders already visited, for links
// that lead in circles.
void add_files(const fs::path& folder, std::set<fs::path>& seen, std::vector<fs::path>& files) {
  if (!seen.insert(fs::canonical(folder)).second) return;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with('.')) continue;
    if (entry.is_directory()) {
      add_files(entry.path(), seen, files);
    } else if (holds_documents(entry.path())) {
      files.push_back(entry.path());
    }
  }
}

}  // namespace

std::vector<TextSource> debian_sources(const fs::path& root) {
  std::vector<TextSource> sources;
  std::string missing;
  for (const PackageProse& package : packages()) {
    TextSource source{
        std::string(package.name), std::string(package.package), std::string(package.licence), {}};
    for (const std::string_view folder : package.folders) {
      const auto pages = pages_in(root / folder, package.skip);
      source.files.insert(source.files.end(), pages.begin(), pages.end());
    }
    if (source.files.empty()) missing += " " + source.package;
    sources.push_back(std::move(source));
  }
  if (!missing.empty()) {
    throw InputError("headway data prepare", "the text for the default corpus is not installed:" + missing,
                     "Install it with: apt-get install" + missing + ". Or name files or folders of your own");
  }
  return sources;
}

std::vector<TextSource> user_sources(const std::vector<fs::path>& paths) {
  std::vector<TextSource> sources;
  for (const fs::path& path : paths) {
    if (!fs::exists(path)) throw InputError(path.string(), "no such file or folder");
    fs::path named = path.lexically_normal();
    if (!named.has_filename()) named = named.parent_path();
    TextSource source{named.filename().string(), "", "not stated", {}};
    if (first_invalid_utf8(source.name)) source.name = "(a name that is not UTF-8)";
    if (fs::is_directory(path)) {
      std::set<fs::path> seen;
      try {
        add_files(path, seen, source.files);
      } catch (const fs::filesystem_error& error) {
        throw InputError(path.string(), std::string("the folder can't be read: ") + error.code().message());
      }
      std::sort(source.files.begin(), source.files.end());
      if (source.files.empty()) {
        throw InputError(path.string(), "the folder has no text files",
                         "Known are .txt, .md and .jsonl, also with .gz or .zst after it, and .parquet");
      }
    } else {
      read_documents(path);  // refuses endings it doesn't know
      source.files.push_back(path);
    }
    sources.push_back(std::move(source));
  }
  return sources;
}

}  // namespace headway::data
