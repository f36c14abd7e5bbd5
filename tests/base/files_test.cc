#include "base/files.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/temporary_folder.h"

namespace headway {
namespace {

using data::expect_error;
using data::TemporaryFolder;
namespace fs = std::filesystem;

TEST(Files, ReadsWhatWasWritten) {
  const TemporaryFolder folder;
  const std::string contents("a\0b\r\n\xff", 6);
  FileSystem::real().write_atomically(folder / "f", contents);
  EXPECT_EQ(read_file(folder / "f"), contents);
  EXPECT_EQ(MappedFile(folder / "f").view(), contents);
}

TEST(Files, AtomicWriteReplacesAndLeavesNothingElse) {
  const TemporaryFolder folder;
  FileSystem::real().write_atomically(folder / "f", "old, and longer");
  FileSystem::real().write_atomically(folder / "f", "new");
  EXPECT_EQ(read_file(folder / "f"), "new");
  const auto entries = fs::directory_iterator(folder / "");
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

// A disk that is full after some bytes.
class FullDisk : public FileSystem {
 public:
  explicit FullDisk(std::size_t space) : space_(space) {}
  std::unique_ptr<WritableFile> create(const fs::path& path) override {
    return std::make_unique<File>(FileSystem::create(path), space_);
  }

 private:
  class File : public WritableFile {
   public:
    File(std::unique_ptr<WritableFile> real, std::size_t& space) : real_(std::move(real)), space_(space) {}
    void append(const void* bytes, std::size_t count) override {
      real_->append(bytes, std::min(count, space_));
      if (count > space_) throw SystemError("f", "disk full");
      space_ -= count;
    }
    void close() override { real_->close(); }

   private:
    std::unique_ptr<WritableFile> real_;
    std::size_t& space_;
  };
  std::size_t space_;
};

TEST(Files, AFullDiskLeavesTheOldFile) {
  const TemporaryFolder folder;
  FileSystem::real().write_atomically(folder / "f", "old");
  for (std::size_t space = 0; space < 3; ++space) {
    FullDisk disk(space);
    EXPECT_THROW(disk.write_atomically(folder / "f", "new"), SystemError);
    EXPECT_EQ(read_file(folder / "f"), "old") << space << " bytes";
  }
  FullDisk disk(3);
  disk.write_atomically(folder / "f", "new");
  EXPECT_EQ(read_file(folder / "f"), "new");
}

TEST(Files, ARealFullDeviceIsReported) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  expect_error<SystemError>([] { FileSystem::real().create("/dev/full")->append("x"); }, "Free some space");
}

TEST(Files, ErrorsNameTheFile) {
  const TemporaryFolder folder;
  expect_error<InputError>([&] { read_file(folder / "none"); },
                           (folder / "none").string() + ": no such file");
  expect_error<InputError>([&] { read_file(folder / ""); }, "not a readable file");
  expect_error<InputError>([&] { MappedFile file(folder / "none"); }, (folder / "none").string());
  expect_error<InputError>([&] { MappedFile file(folder / ""); }, "not a regular file");
  expect_error<SystemError>([&] { FileSystem::real().create(folder / "none" / "f"); },
                            "none/f: creating failed");
  expect_error<SystemError>([&] { FileSystem::real().rename(folder / "none", folder / "f"); }, "renaming to");
}

TEST(Files, AnEmptyFileMapsToNothing) {
  const TemporaryFolder folder;
  const MappedFile file(folder.write("empty", ""));
  EXPECT_EQ(file.size(), 0u);
  EXPECT_EQ(file.view(), "");
}

}  // namespace
}  // namespace headway
