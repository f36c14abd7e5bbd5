#include "chip/storage.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/error.h"

namespace headway::chip {
namespace {

constexpr std::int64_t kRegionRows = 32, kRegionBytes = 2048, kRegionBytesOfOneRow = 65536;

}  // namespace

struct Storage::Pages {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  bool mapped = false;

  Pages(std::int64_t size, bool zero) : bytes(static_cast<std::size_t>(std::max<std::int64_t>(size, 1))) {
    mapped = size >= Storage::kLazy;
    if (mapped) {
      void* pages =
          mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (pages == MAP_FAILED) throw std::bad_alloc();
      data = static_cast<std::byte*>(pages);
    } else {
      data = static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
      if (!data) throw std::bad_alloc();
      if (zero) std::memset(data, 0, bytes);
    }
  }
  ~Pages() {
    if (mapped) {
      munmap(data, bytes);
    } else {
      std::free(data);
    }
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::uint64_t* words() const { return reinterpret_cast<std::uint64_t*>(data); }
};

Storage::Storage(std::int64_t rows, std::int64_t row_bytes)
    : rows_(rows), pitch_(row_bytes), memory_(std::make_unique<Pages>(rows * row_bytes, false)) {
  data_ = memory_->data;
}

Storage::Storage(const std::byte* borrowed, std::int64_t bytes)
    : data_(const_cast<std::byte*>(borrowed)), rows_(1), pitch_(bytes), borrowed_(true), state_(State::all) {}

Storage::~Storage() = default;

void Storage::own() {
  ++writes_;
  if (!borrowed_) return;
  auto memory = std::make_unique<Pages>(bytes(), false);
  std::memcpy(memory->data, data_, static_cast<std::size_t>(bytes()));
  memory_ = std::move(memory);
  data_ = memory_->data;
  borrowed_ = false;
}

bool Storage::written(std::int64_t begin, std::int64_t end) const {
  return first_unwritten(begin, end) == end;
}

std::int64_t Storage::first_unwritten(std::int64_t begin, std::int64_t end) const {
  if (state_ == State::all || begin >= end) return end;
  if (state_ == State::none) return begin;
  const std::uint64_t* words = bits_->words();
  std::int64_t word = begin / 64;
  const std::int64_t last = (end - 1) / 64;
  std::uint64_t missing = ~words[word] & (~std::uint64_t{0} << (begin % 64));
  for (;; missing = ~words[++word]) {
    if (word == last && end % 64 != 0) missing &= (std::uint64_t{1} << (end % 64)) - 1;
    if (missing != 0) return word * 64 + std::countr_zero(missing);
    if (word == last) return end;
  }
}

void Storage::mark(std::int64_t begin, std::int64_t end) {
  if (state_ == State::all || begin >= end) return;
  if (begin == 0 && end == bytes()) return mark_all();
  if (state_ == State::none) {
    if (!bits_) {
      bits_ = std::make_unique<Pages>((bytes() + 63) / 64 * 8, true);
    } else {
      std::memset(bits_->data, 0, bits_->bytes);
    }
    state_ = State::partial;
    written_bytes_ = 0;
  }
  std::uint64_t* words = bits_->words();
  std::int64_t word = begin / 64;
  const std::int64_t last = (end - 1) / 64;
  std::uint64_t fresh = ~std::uint64_t{0} << (begin % 64);
  for (;; fresh = ~std::uint64_t{0}) {
    if (word == last && end % 64 != 0) fresh &= (std::uint64_t{1} << (end % 64)) - 1;
    if (const std::uint64_t missing = fresh & ~words[word]; missing != 0) {
      written_bytes_ += std::popcount(missing);
      words[word] |= missing;
    }
    if (word == last) break;
    ++word;
  }
  if (written_bytes_ == bytes()) mark_all();
}

void Storage::mark_all() { state_ = State::all; }

void Storage::forget() {
  if (borrowed_) throw Bug("borrowed memory was always written");
  state_ = State::none;
  if (writers_) std::memset(writers_->data, 0, writers_->bytes);
}

std::size_t Storage::region(std::int64_t byte) const {
  if (rows_ == 1) return static_cast<std::size_t>(byte / kRegionBytesOfOneRow);
  const std::int64_t row = byte / pitch_;
  const std::int64_t across = (pitch_ + kRegionBytes - 1) / kRegionBytes;
  return static_cast<std::size_t>(row / kRegionRows * across + byte % pitch_ / kRegionBytes);
}

void Storage::set_writer(std::int64_t begin, std::int64_t end, std::uint64_t writer) {
  if (begin >= end) return;
  if (!writers_) {
    const std::int64_t groups = (rows_ + kRegionRows - 1) / kRegionRows;
    const std::int64_t across = rows_ == 1 ? (pitch_ + kRegionBytesOfOneRow - 1) / kRegionBytesOfOneRow
                                           : (pitch_ + kRegionBytes - 1) / kRegionBytes;
    writers_ = std::make_unique<Pages>(groups * across * 8, true);
  }
  const std::size_t first = region(begin), last = region(end - 1);
  for (std::size_t r = first; r <= last; ++r) writers_->words()[r] = writer;
}

std::uint64_t Storage::last_writer(std::int64_t begin, std::int64_t end) const {
  if (!writers_ || begin >= end) return 0;
  std::uint64_t latest = 0;
  for (std::size_t r = region(begin), last = region(end - 1); r <= last; ++r)
    latest = std::max(latest, writers_->words()[r]);
  return latest;
}

}  // namespace headway::chip
