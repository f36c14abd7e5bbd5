// Memory with a memory of its own: which bytes were ever written, and by which instruction last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace headway::chip {

// Rows of bytes (partitions; HBM is one row). Pages that nobody touches cost nothing, neither here nor in the
// books that are kept.
class Storage {
 public:
  // From this many bytes on, memory comes in pages that are zero and cost nothing until they are touched.
  static constexpr std::int64_t kLazy = 1 << 20;

  // Own memory. Not initialised.
  Storage(std::int64_t rows, std::int64_t row_bytes);
  // Borrowed memory, all of it written. `read_only` memory is copied before the first write.
  Storage(const std::byte* borrowed, std::int64_t bytes);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::byte* data() const { return data_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t pitch() const {
    return pitch_;
  }  // bytes from row to row, those of a row rounded up to nothing: rows are dense
  std::int64_t bytes() const { return rows_ * pitch_; }

  // Before a write: makes borrowed memory our own, and counts. Invalidates data().
  void own();
  // Grows with every write: what was derived from the memory is good while this stays.
  std::uint64_t writes() const { return writes_; }

  // Runs of bytes are given as [begin, end) from data().
  bool all_written() const { return state_ == State::all; }
  bool written(std::int64_t begin, std::int64_t end) const;
  // The first byte of the run that was never written, or `end`.
  std::int64_t first_unwritten(std::int64_t begin, std::int64_t end) const;
  void mark(std::int64_t begin, std::int64_t end);
  void mark_all();
  // Back to never written, keeping the memory.
  void forget();

  // The last writer per region of 32 rows x 2 KiB (of 64 KiB where there is one row). `writer` is anything
  // but 0.
  void set_writer(std::int64_t begin, std::int64_t end, std::uint64_t writer);
  std::uint64_t last_writer(std::int64_t begin,
                            std::int64_t end) const;  // the latest of the regions touched; 0: none

 private:
  enum class State : unsigned char { none, partial, all };
  std::size_t region(std::int64_t byte) const;

  std::byte* data_ = nullptr;
  std::int64_t rows_ = 0, pitch_ = 0;
  bool borrowed_ = false;
  std::uint64_t writes_ = 0;
  State state_ = State::none;
  std::int64_t written_bytes_ = 0;
  struct Pages;  // lazily mapped, zero at first
  std::unique_ptr<Pages> memory_, bits_, writers_;
};

}  // namespace headway::chip
