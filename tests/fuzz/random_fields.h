// Fills in the fields of an instruction at random. Declares the tensors that it doesn't find.
#pragma once

#include <cstdint>
#include <string_view>

#include "chip/fields.h"
#include "chip/program.h"
#include "fuzz/draw.h"
#include "fuzz/wishes.h"

namespace headway::fuzz {

class RandomFields : public chip::Fields {
 public:
  RandomFields(Draw& draw, chip::Program& program, const Plan& plan, std::string_view instruction)
      : draw_(draw), program_(program), plan_(plan), instruction_(instruction) {}

  void view(std::string_view name, chip::View& view, chip::Access access) override;
  void views(std::string_view name, std::vector<chip::View>& views, chip::Access access) override;
  void optional_view(std::string_view name, std::optional<chip::View>& view, chip::Access access) override;
  void scalar(std::string_view name, chip::Scalar& scalar) override;
  void reg(std::string_view name, chip::Register& reg, chip::Access access) override;
  void register_or(std::string_view name, chip::RegisterOr& value) override;
  void integer(std::string_view name, std::int64_t& value) override;
  void integers(std::string_view name, std::vector<std::int64_t>& values) override;
  void number(std::string_view name, float& value) override;
  void numbers(std::string_view name, std::vector<float>& values) override;
  void flag(std::string_view name, bool& value) override;
  void chosen(std::string_view name, int& value, std::span<const std::string_view> names) override;

 private:
  chip::View any_view();
  chip::View view_of(Place place, DType dtype, std::int64_t rows, std::int64_t columns);
  // A tensor of that kind that can hold rows x columns, or -1.
  std::int64_t find(Place place, DType dtype, std::int64_t rows, std::int64_t columns);
  std::int64_t declare(Place place, DType dtype, std::int64_t rows, std::int64_t columns);
  Place any_place();
  std::int64_t any_integer();
  std::int64_t extent();
  // Counts whose product is n, outermost first, at most `most` of them.
  std::vector<std::int64_t> factors(std::int64_t n, int most);

  Draw& draw_;
  chip::Program& program_;
  Plan plan_;
  std::string_view instruction_;
};

// Changes one field of an instruction.
void mutate(Draw& draw, chip::Program& program, chip::Instruction& instruction);

}  // namespace headway::fuzz
