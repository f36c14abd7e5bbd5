#include "cli/python_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/home.h"

namespace headway::cli {
namespace {

constexpr const char* kRemedy =
    "Set HEADWAY_PYTHON to a Python that has the package headway-nki, or build it here: ./run python -V";

// What closes its file when it goes.
struct Descriptor {
  int number = -1;
  Descriptor() = default;
  explicit Descriptor(int of) : number(of) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }
  void close() {
    if (number >= 0) ::close(number);
    number = -1;
  }
};

bool has_extension(const std::filesystem::path& package) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(package, none))
    if (entry.path().filename().string().starts_with("_chip.")) return true;
  return false;
}

// The source tree's package in front of others, once it is built.
void prepend_package() {
  const std::filesystem::path python = home() / "python";
  if (!has_extension(python / "headway")) return;
  const char* before = std::getenv("PYTHONPATH");
  const std::string path = before && *before ? python.string() + ":" + before : python.string();
  ::setenv("PYTHONPATH", path.c_str(), 1);
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

[[noreturn]] void refuse_start(const std::string& python, int error) {
  throw InputError(python, fmt::format("can't be started: {}", std::strerror(error)), kRemedy);
}

// In memory, so that a child that ends early can't block or break the writing.
int memory_file(const std::string& contents) {
  const int file = ::memfd_create("headway-request", MFD_CLOEXEC);
  if (file < 0) throw SystemError("python", fmt::format("memfd_create: {}", std::strerror(errno)));
  for (std::size_t at = 0; at < contents.size();) {
    const ssize_t n = ::write(file, contents.data() + at, contents.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw SystemError("python", fmt::format("writing the request: {}", std::strerror(errno)));
    at += static_cast<std::size_t>(n);
  }
  ::lseek(file, 0, SEEK_SET);
  return file;
}

}  // namespace

std::string python_program() {
  const char* asked = std::getenv("HEADWAY_PYTHON");
  if (asked && *asked) return asked;
  const std::filesystem::path own = home() / "build" / "venv" / "bin" / "python";
  return std::filesystem::exists(own) ? own.string() : "python3";
}

PythonAnswer run_python(const std::vector<std::string>& arguments, const std::string& input) {
  std::fflush(nullptr);
  const std::string python = python_program();
  std::vector<std::string> words = {python};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::vector<char*> argv = pointers(words);
  prepend_package();
  Descriptor request(memory_file(input));
  // The second pipe says whether exec failed; it closes by itself where it didn't.
  int output[2], failure[2];
  if (::pipe2(output, O_CLOEXEC) != 0)
    throw SystemError("python", fmt::format("pipe: {}", std::strerror(errno)));
  Descriptor from(output[0]), to(output[1]);
  if (::pipe2(failure, O_CLOEXEC) != 0)
    throw SystemError("python", fmt::format("pipe: {}", std::strerror(errno)));
  Descriptor failed(failure[0]), fails(failure[1]);
  const pid_t child = ::fork();
  if (child < 0) throw SystemError("python", fmt::format("fork: {}", std::strerror(errno)));
  if (child == 0) {
    ::dup2(request.number, STDIN_FILENO);
    ::dup2(to.number, STDOUT_FILENO);
    ::execvp(argv[0], argv.data());
    const int error = errno;
    [[maybe_unused]] const ssize_t told = ::write(fails.number, &error, sizeof error);
    ::_exit(127);
  }
  to.close();
  fails.close();
  PythonAnswer answer;
  char buffer[1 << 16];
  while (true) {
    const ssize_t n = ::read(from.number, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    answer.output.append(buffer, static_cast<std::size_t>(n));
  }
  int error = 0;
  const bool unstarted = ::read(failed.number, &error, sizeof error) == sizeof error;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (unstarted) refuse_start(python, error);
  answer.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return answer;
}

void become_python(const std::vector<std::string>& arguments) {
  std::fflush(nullptr);
  const std::string python = python_program();
  std::vector<std::string> words = {python};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::vector<char*> argv = pointers(words);
  prepend_package();
  ::execvp(argv[0], argv.data());
  refuse_start(python, errno);
}

}  // namespace headway::cli
