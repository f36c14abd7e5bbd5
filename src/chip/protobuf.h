// Messages in the wire format of Protocol Buffers, written field by field. Format: the Encoding page of the
// Protocol Buffers documentation.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace headway::chip {

class ProtobufMessage {
 public:
  // uint64, int64, enum and bool fields.
  void add(int field, std::uint64_t value) {
    tag(field, 0);
    varint(value);
  }
  // double fields.
  void add_double(int field, double value) { add_fixed(field, std::bit_cast<std::uint64_t>(value)); }
  // fixed64 fields.
  void add_fixed(int field, std::uint64_t value) {
    tag(field, 1);
    for (int byte = 0; byte < 8; ++byte) bytes_ += static_cast<char>(value >> (8 * byte) & 0xff);
  }
  void add(int field, std::string_view text) {
    tag(field, 2);
    varint(text.size());
    bytes_ += text;
  }
  void add(int field, const ProtobufMessage& message) { add(field, std::string_view(message.bytes_)); }
  void clear() { bytes_.clear(); }
  const std::string& bytes() const { return bytes_; }

 private:
  void tag(int field, unsigned wire_type) { varint(static_cast<std::uint64_t>(field) << 3 | wire_type); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

}  // namespace headway::chip
