// Thrift's compact protocol, reading only: what Parquet's footer and page headers are written in
// (apache/thrift doc/specs/thrift-compact-protocol.md). Every read is checked against the end of the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headway::data {

enum class ThriftType : std::uint8_t {
  stop = 0,
  true_ = 1,
  false_ = 2,
  i8 = 3,
  i16 = 4,
  i32 = 5,
  i64 = 6,
  double_ = 7,
  binary = 8,
  list = 9,
  set = 10,
  map = 11,
  structure = 12,
};

class ThriftReader {
 public:
  // `where` names the bytes in the InputErrors that all reads throw on damage.
  ThriftReader(std::string_view bytes, std::string where) : bytes_(bytes), where_(std::move(where)) {}

  // Bytes read so far.
  std::size_t position() const { return at_; }

  struct Field {
    std::int16_t id = 0;
    ThriftType type = ThriftType::stop;
  };
  // Reads a structure: calls on_field(field) for each of its fields, which reads the value or returns false
  // to have it skipped.
  template <typename OnField>
  void structure(OnField on_field) {
    enter();
    Field field;
    while (next_field(field)) {
      if (!on_field(field)) skip(field.type);
    }
    leave();
  }
  // Reads a list whose elements must be of `type`, calling on_element() for each. An element takes at least
  // one byte, so a damaged count fails before it costs anything.
  template <typename OnElement>
  void list(const Field& field, ThriftType type, OnElement on_element) {
    for (std::uint64_t left = list_size(field, type); left > 0; --left) on_element();
  }
  std::int32_t i32(const Field& field);
  std::int64_t i64(const Field& field);
  std::string_view binary(const Field& field);
  // Elements of lists.
  std::int64_t integer_element();
  std::string_view binary_element();

 private:
  [[noreturn]] void damaged(const std::string& what) const;
  std::uint8_t byte();
  std::uint64_t varint();
  std::string_view take(std::uint64_t count);
  bool next_field(Field& field);
  std::uint64_t list_size(const Field& field, ThriftType type);
  void skip(ThriftType type, bool in_list = false);
  void enter();
  void leave();

  std::string_view bytes_;
  std::string where_;
  std::size_t at_ = 0;
  std::int16_t last_id_ = 0;
  int depth_ = 0;
  static constexpr int kDeepest = 16;  // Parquet's own structures nest to about 6
  std::int16_t outer_ids_[kDeepest] = {};
};

}  // namespace headway::data
