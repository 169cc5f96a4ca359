#include <gtest/gtest.h>

#include "base/error.h"
#include "types/attrs.h"
#include "types/bound_watch.h"
#include "types/shape.h"
#include "types/step_program.h"

namespace aloft {
namespace {

TEST(TensorType, PrintsAndParsesBack) {
  for (const char* text : {"f32[]", "bf16[2,3]", "i32[B<=8,256]", "f16[256*B<=8,768]"})
    EXPECT_EQ(parse_tensor_type(text).str(), text);
}

TEST(TensorType, RefusesWhatIsNotOne) {
  for (const char* text :
       {"", "f32", "f33[1]", "f32[1", "f32[1,]", "f32[-1]", "f32[<=8]", "f32[x]"})
    EXPECT_THROW(parse_tensor_type(text), UserError) << text;
}

TEST(TensorType, RefusesSizesBeyond63Bits) {
  EXPECT_THROW(parse_tensor_type("f64[2305843009213693952]").max_bytes(), UserError);
  EXPECT_THROW(parse_tensor_type("u8[4294967296*B<=4294967296]").max_bytes(), UserError);
  EXPECT_EQ(parse_tensor_type("u8[9223372036854775807]").max_bytes(), 9223372036854775807u);
}

// Text in which a symbol could be read in two ways must not become one.
TEST(Shape, HasNoAxisBeyondItsRank) {
  const Shape shape{2, 3}, scalar;
  EXPECT_EQ(shape[1], Dim(3));
  EXPECT_EQ(shape[-2], Dim(2));
  const auto code = [](const Shape& s, int axis) {
    try {
      return s[axis].str();
    } catch (const UserError& e) {
      return e.code();
    }
  };
  EXPECT_EQ(code(shape, 2), "E0107");
  EXPECT_EQ(code(shape, -3), "E0107");
  EXPECT_EQ(code(scalar, 0), "E0107");
  EXPECT_EQ(code(scalar, -1), "E0107");
}

TEST(Dim, SymbolsAreNames) {
  for (const char* text : {"B*C<=8", "1*3*B<=8", "2B<=8", "<=8", "a b<=8", "B[<=8"})
    EXPECT_THROW(parse_dim(text), UserError) << text;
  EXPECT_EQ(parse_dim("3*batch_2<=8").str(), "3*batch_2<=8");
}

TEST(Attrs, NamesAreNames) {
  for (const char* text : {"{a b=1}", "{\"a\"=1}", "{ a =1}", "{2a=1}", "{}x=1}"})
    EXPECT_THROW(parse_attrs(text), UserError) << text;
}

TEST(Dim, ProductOfTwoSymbolsIsRefused) {
  const Dim b = Dim::symbolic("B", 8), t = Dim::symbolic("T", 16);
  EXPECT_EQ((b * Dim(256)).max(), 2048);
  EXPECT_THROW(b * t, UserError);
  EXPECT_THROW(Dim(std::int64_t{1} << 40) * Dim(std::int64_t{1} << 40), UserError);
}

// Outside of a traced function a length is itself. Within one it is as long as the batch that is
// traced, and who compares it with a number that another batch may have is noted.
TEST(Dim, ComparesWithNumbersWhereSomebodyWatches) {
  const Dim rows = Dim::symbolic("B", 8), items = Dim::symbolic("B", 8, 3);
  EXPECT_FALSE(rows == 8);
  EXPECT_FALSE((Shape{rows, 4} == Shape{8, 4}));
  const auto compare = [](const auto& a, const auto& b) {
    bool noted = false;
    const BoundWatch watch(&noted);
    const bool equal = a == b;
    EXPECT_EQ(b == a, equal);
    return std::pair{equal, noted};
  };
  const std::pair same{true, true}, other{false, true}, never{false, false}, itself{true, false};
  EXPECT_EQ(compare(rows, Dim(8)), same);
  EXPECT_EQ(compare(items, Dim(24)), same);
  EXPECT_EQ(compare(Shape{rows, 4}, Shape{8, 4}), same);
  EXPECT_EQ(compare(rows, Dim(5)), other);
  EXPECT_EQ(compare(items, Dim(6)), other);
  for (const std::int64_t n : {0, 1, 9, -8}) EXPECT_EQ(compare(rows, Dim(n)), never) << n;
  for (const std::int64_t n : {8, 3, 27}) EXPECT_EQ(compare(items, Dim(n)), never) << n;
  EXPECT_EQ(compare(rows, Dim::symbolic("T", 8)), never);
  EXPECT_EQ(compare(rows, items), never);
  EXPECT_EQ(compare(rows, Dim::symbolic("B", 8)), itself);
  EXPECT_EQ(compare(Dim(8), Dim(8)), itself);
}

struct Everything {
  std::int64_t axis = -1;
  double eps = 1e-5;
  bool keep = false;
  std::string name;
  Ints perm;
  DType to = DType::F32;
  Shape shape;
  static constexpr auto fields() {
    using E = Everything;
    return FieldList{field("axis", &E::axis, ""),  field("eps", &E::eps, ""),
                     field("keep", &E::keep, ""),  field("name", &E::name, ""),
                     field("perm", &E::perm, ""),  field("to", &E::to, ""),
                     field("shape", &E::shape, "")};
  }
};

TEST(Attrs, StructAndTextRoundTrip) {
  Everything e{
      3, 2.0, true, "a \"b\", {c}\n\\", {0, 2, 1}, DType::BF16, {Dim::symbolic("B", 8), 4}};
  const Attrs attrs = to_attrs(e);
  EXPECT_EQ(parse_attrs(attrs.str()), attrs) << attrs.str();
  EXPECT_EQ(to_attrs(from_attrs<Everything>(attrs)), attrs);
}

TEST(Attrs, UnknownNamesAndKindsAreErrors) {
  EXPECT_THROW(from_attrs<Everything>(parse_attrs("{axes=1}")), UserError);
  EXPECT_THROW(from_attrs<Everything>(parse_attrs("{axis=1.5}")), UserError);
  for (const char* text : {"{", "{axis}", "{axis=}", "{axis=(1,}", "{a=\"x}", "{a=1}b", "axis=1"})
    EXPECT_THROW(parse_attrs(text), UserError) << text;
}

TEST(StepProgram, TextRoundTrips) {
  const char* text =
      "%2 = add(%0, %1) : bf16; %3 = note(%2) {name=\"a } b\", p=0.5} : f32; "
      "%4 = where(%0, %3, %2) : f16; return %4, %2";
  const StepProgram program = parse_step_program(text, 2);
  EXPECT_EQ(print(program), text);
  EXPECT_EQ(program.steps[2].in, (std::vector<int>{0, 3, 2}));
  EXPECT_EQ(program.step_of(3)->dtype, DType::F32);
  EXPECT_EQ(program.out, (std::vector<int>{4, 2}));
}

TEST(StepProgram, WrongTextIsRefused) {
  for (const char* text :
       {"", "return", "return %0", "%1 = neg(%0) : f32", "%1 = neg(%0) : f32; return",
        "%1 = neg(%0) : f32; return %2", "%1 = neg(%0) : f32; return %1, %1",
        "%1 = neg(%0) : f32; return %1 and", "%1 = neg(%1) : f32; return %1",
        "%2 = neg(%0) : f32; return %2", "%1 = neg(%-1) : f32; return %1",
        "%1 = neg(%0) : f33; return %1", "%1 = neg(%0) {a=1 : f32; return %1",
        "%1 = neg(%99999999999) : f32; return %1", "%1 = neg(%0 : f32; return %1"})
    EXPECT_THROW(parse_step_program(text, 1), UserError) << text;
  std::string many;
  for (int i = 1; i <= kMostSteps + 1; ++i) many += "%" + std::to_string(i) + " = neg(%0) : f32; ";
  EXPECT_THROW(parse_step_program(many + "return %1", 1), UserError);
}

}  // namespace
}  // namespace aloft
