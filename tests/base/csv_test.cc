#include "base/csv.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace headway {
namespace {

template <class Act>
std::string refusal(Act&& act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.what();
  }
  return "wasn't refused";
}
bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

TEST(Csv, ReadsCellsByHead) {
  CsvReader csv("a,b,c\n1,\"x, y\nz\",2.5\r\n-7,,1e3\n", "t.csv", {"a", "b", "c"});
  ASSERT_TRUE(csv.next());
  EXPECT_EQ(csv.where(), "t.csv:2");
  EXPECT_EQ(csv.integer("a", 0, 10), 1);
  EXPECT_EQ(csv.cell("b"), "x, y\nz");
  EXPECT_EQ(csv.number("c"), 2.5);
  ASSERT_TRUE(csv.next());
  // The quoted newline counts.
  EXPECT_EQ(csv.where(), "t.csv:4");
  EXPECT_EQ(csv.integer("a", -10, 10), -7);
  EXPECT_EQ(csv.cell("b"), "");
  EXPECT_EQ(csv.number("c"), 1000);
  EXPECT_FALSE(csv.next());
}

TEST(Csv, RefusesWithFileAndLine) {
  const auto reading = [](const std::string& text) {
    return refusal([&] {
      CsvReader csv(text, "t.csv", {"a", "b"});
      while (csv.next()) {
      }
    });
  };
  EXPECT_TRUE(says(reading(""), "t.csv"));
  EXPECT_TRUE(says(reading("b,a\n"), "t.csv:1"));
  EXPECT_TRUE(says(reading("a,b\n1,2\n1,2,3\n"), "t.csv:3"));
  EXPECT_TRUE(says(reading("a,b\n1,2\n1,2"), "cut off"));
  EXPECT_TRUE(says(reading("a,b\n1,\"2\n"), "quote"));
  EXPECT_EQ(reading("a,b\n1,2\n"), "wasn't refused");

  CsvReader csv("a,b\n12,nan\n", "t.csv", {"a", "b"});
  ASSERT_TRUE(csv.next());
  for (const std::string& message :
       {refusal([&] { csv.integer("a", 0, 11); }), refusal([&] { csv.integer("b", 0, 11); }),
        refusal([&] { csv.number("b"); }), refusal([&] { csv.refuse("no"); })})
    EXPECT_TRUE(says(message, "t.csv:2")) << message;
}

}  // namespace
}  // namespace headway
