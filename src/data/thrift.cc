#include "data/thrift.h"

#include <limits>

#include "base/error.h"

namespace headway::data {
namespace {

std::int64_t zigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

}  // namespace

void ThriftReader::damaged(const std::string& what) const {
  throw InputError(where_, "damaged Parquet metadata: " + what + " at its byte " + std::to_string(at_));
}

std::uint8_t ThriftReader::byte() {
  if (at_ >= bytes_.size()) damaged("it ends too early");
  return static_cast<std::uint8_t>(bytes_[at_++]);
}

std::uint64_t ThriftReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::uint8_t b = byte();
    value |= static_cast<std::uint64_t>(b & 0x7fu) << shift;
    if (b < 0x80) return value;
  }
  damaged("an integer longer than 64 bits");
}

std::string_view ThriftReader::take(std::uint64_t count) {
  if (count > bytes_.size() - at_) damaged("a field that is longer than the metadata");
  const std::string_view taken = bytes_.substr(at_, count);
  at_ += count;
  return taken;
}

void ThriftReader::enter() {
  if (depth_ == kDeepest) damaged("structures nested too deeply");
  outer_ids_[depth_++] = last_id_;
  last_id_ = 0;
}

void ThriftReader::leave() { last_id_ = outer_ids_[--depth_]; }

bool ThriftReader::next_field(Field& field) {
  const std::uint8_t head = byte();
  if (head == 0) return false;
  const unsigned type = head & 0x0fu;
  if (type == 0 || type > 12) damaged("an unknown field type");
  const int delta = head >> 4;
  const std::int64_t id = delta != 0 ? last_id_ + delta : zigzag(varint());
  if (id < 0 || id > std::numeric_limits<std::int16_t>::max()) damaged("an impossible field number");
  field.id = last_id_ = static_cast<std::int16_t>(id);
  field.type = static_cast<ThriftType>(type);
  return true;
}

std::uint64_t ThriftReader::list_size(const Field& field, ThriftType type) {
  if (field.type != ThriftType::list) damaged("a field that should be a list");
  const std::uint8_t head = byte();
  const std::uint64_t size = (head >> 4) == 15 ? varint() : head >> 4;
  if (size > 0 && static_cast<ThriftType>(head & 0x0f) != type)
    damaged("a list of another type than expected");
  if (size > bytes_.size() - at_) damaged("a list that is longer than the metadata");
  return size;
}

std::int32_t ThriftReader::i32(const Field& field) {
  if (field.type != ThriftType::i32) damaged("a field that should be a 32-bit integer");
  const std::int64_t value = zigzag(varint());
  if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max()) {
    damaged("an integer above 32 bits");
  }
  return static_cast<std::int32_t>(value);
}

std::int64_t ThriftReader::i64(const Field& field) {
  if (field.type != ThriftType::i64) damaged("a field that should be a 64-bit integer");
  return zigzag(varint());
}

std::string_view ThriftReader::binary(const Field& field) {
  if (field.type != ThriftType::binary) damaged("a field that should be a string");
  return binary_element();
}

std::int64_t ThriftReader::integer_element() { return zigzag(varint()); }

std::string_view ThriftReader::binary_element() { return take(varint()); }

void ThriftReader::skip(ThriftType type, bool in_list) {
  switch (type) {
    case ThriftType::true_:
    case ThriftType::false_:
      if (in_list) byte();  // a field carries its truth in its type, an element needs a byte
      return;
    case ThriftType::i8:
      byte();
      return;
    case ThriftType::i16:
    case ThriftType::i32:
    case ThriftType::i64:
      varint();
      return;
    case ThriftType::double_:
      take(8);
      return;
    case ThriftType::binary:
      take(varint());
      return;
    case ThriftType::list:
    case ThriftType::set: {
      const std::uint8_t head = byte();
      const std::uint64_t size = (head >> 4) == 15 ? varint() : head >> 4;
      if (size > bytes_.size() - at_) damaged("a list that is longer than the metadata");
      enter();
      for (std::uint64_t i = 0; i < size; ++i) skip(static_cast<ThriftType>(head & 0x0f), true);
      leave();
      return;
    }
    case ThriftType::map: {
      const std::uint64_t size = varint();
      if (size == 0) return;
      const std::uint8_t types = byte();
      if (size > bytes_.size() - at_) damaged("a map that is longer than the metadata");
      enter();
      for (std::uint64_t i = 0; i < size; ++i) {
        skip(static_cast<ThriftType>(types >> 4), true);
        skip(static_cast<ThriftType>(types & 0x0f), true);
      }
      leave();
      return;
    }
    case ThriftType::structure:
      structure([](const Field&) { return false; });
      return;
    case ThriftType::stop:
      break;
  }
  damaged("an unknown element type");
}

}  // namespace headway::data
