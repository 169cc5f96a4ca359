#include "files/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/error.h"
#include "files/judge_python.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

// A file from its header's text and so many bytes of data.
std::string file_of(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), 8);
  file += header;
  for (std::size_t i = 0; i < data_bytes; ++i) file += static_cast<char>(i);
  return file;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

// The header of one tensor "a".
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{" + entry("a", dtype, shape, offsets) + "}";
}

// Of two U8 tensors.
std::string two(const std::string& name_a, const std::string& offsets_a, const std::string& name_b,
                const std::string& offsets_b, const std::string& shape) {
  return "{" + entry(name_a, "U8", shape, offsets_a) + "," + entry(name_b, "U8", shape, offsets_b) +
         "}";
}

Safetensors parse(const std::string& file) {
  return Safetensors::parse(std::as_bytes(std::span(file)), "test");
}

std::string code_of(const std::string& file) {
  try {
    parse(file);
    return "accepted";
  } catch (const DataError& e) {
    return e.code();
  }
}

// Files that are handed to the disk in blocks: their bytes, and what they are known by.
TEST(Safetensors, LargeFilesAreTheirTensorsAndTheirSeal) {
  TemporaryFolder folder;
  std::vector<std::uint32_t> values((std::size_t{66} << 20) / 4 + 321);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::uint32_t>(i) * 2654435761u;
  const auto bytes = std::as_bytes(std::span(values));
  const auto count = static_cast<std::int64_t>(values.size());
  for (const std::int64_t small : {std::int64_t{7}, count}) {
    const Path path = folder / "large.safetensors";
    const std::vector<TensorView> tensors = {
        {"a", {DType::F32, Shape{count}}, bytes},
        {"b", {DType::F32, Shape{small}}, bytes.first(static_cast<std::size_t>(small) * 4)}};
    const FileSeal seal = write_safetensors(path, tensors);
    const std::string file = read_file(path, std::uint64_t{1} << 28);
    EXPECT_EQ(seal, (FileSeal{file.size(), hash64(file)}));
    const Safetensors read = parse(file);
    for (const TensorView& t : tensors)
      EXPECT_TRUE(std::ranges::equal(read.at(t.name).bytes, t.bytes)) << t.name;
  }
}

TEST(Safetensors, EveryTypeGoesThereAndBack) {
  TemporaryFolder folder;
  std::string bytes(1000, '\0');
  std::mt19937 random(3);
  for (char& c : bytes) c = static_cast<char>(random());
  std::vector<TensorView> tensors;
  for (DType dtype : kAllDTypes)
    for (const auto& shape : {Shape{}, Shape{3}, Shape{2, 0, 4}, Shape{2, 3, 1}}) {
      const TensorType type{dtype, shape};
      tensors.push_back({std::string(name_of(dtype)) + "." + shape.str(), type,
                         std::as_bytes(std::span(bytes)).first(type.max_bytes())});
    }
  const Metadata metadata{{"format", "pt"}, {"quote \" and \n", "\xE2\x82\xAC"}};
  write_safetensors(folder / "a", tensors, metadata);
  const Safetensors file = Safetensors::open(folder / "a");
  EXPECT_EQ(file.metadata(), metadata);
  ASSERT_EQ(file.tensors().size(), tensors.size());
  for (const TensorView& tensor : tensors) {
    const TensorView& back = file.at(tensor.name);
    EXPECT_EQ(back.type, tensor.type);
    EXPECT_TRUE(std::ranges::equal(back.bytes, tensor.bytes));
    // The writer aligns every tensor to its element.
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(back.bytes.data()) % size_of(tensor.type.dtype), 0u);
  }
  for (std::size_t i = 1; i < tensors.size(); ++i)
    EXPECT_LT(file.tensors()[i - 1].name, file.tensors()[i].name);
  std::reverse(tensors.begin(), tensors.end());
  write_safetensors(folder / "b", tensors, metadata);
  EXPECT_EQ(read_file(folder / "a"), read_file(folder / "b"));
}

// A view of other bytes than its type has is the caller's mistake, and leaves no file.
TEST(Safetensors, RefusesToWriteOtherBytesThanTheTypes) {
  const TemporaryFolder folder;
  const std::vector<std::byte> eight(8);
  const auto code = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const UserError& e) {
      return e.code();
    }
    return "";
  };
  for (const Shape& shape : {Shape{3}, Shape{1}, Shape{0}, Shape{}}) {
    const TensorView view{"a", {DType::F32, shape}, eight};
    EXPECT_EQ(code([&] { write_safetensors(folder / "a", std::span(&view, 1)); }), "E0614");
  }
  const auto writer = [&] {
    return SafetensorsWriter(folder / "a", {{"a", {DType::F32, Shape{2}}}}, {});
  };
  EXPECT_EQ(code([&] { writer().finish(); }), "E0614");
  EXPECT_EQ(code([&] { writer().write(std::vector<std::byte>(9)); }), "E0614");
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
}

// What a file gives dies with it: of one without a name, nothing can be asked.
template <class File>
concept GivesItsTensors = requires(File&& file) {
  std::forward<File>(file).tensors();
}
|| requires(File&& file) { std::forward<File>(file).metadata(); }
|| requires(File&& file) { std::forward<File>(file).name(); }
|| requires(File&& file) { std::forward<File>(file).find("a"); }
|| requires(File&& file) { std::forward<File>(file).at("a"); };
static_assert(GivesItsTensors<Safetensors&> && GivesItsTensors<const Safetensors&>);
static_assert(!GivesItsTensors<Safetensors> && !GivesItsTensors<const Safetensors>);

TEST(Safetensors, AMissingTensorIsNamedWithItsNeighbour) {
  const std::string file = file_of("{" + entry("h.0.attn.weight", "F32", "[1]", "[0,4]") + "}", 4);
  const Safetensors parsed = parse(file);
  EXPECT_EQ(parsed.find("h.0"), nullptr);
  try {
    parsed.at("h.0.attn.weigth");
    FAIL();
  } catch (const DataError& e) {
    EXPECT_NE(std::string(e.what()).find("h.0.attn.weight\""), std::string::npos) << e.what();
  }
}

TEST(Safetensors, AcceptsWhatOthersWrite) {
  for (const char* header : {"{}", "{}      "}) {
    const std::string file = file_of(header, 0);
    const Safetensors parsed = parse(file);
    EXPECT_EQ(parsed.tensors().size(), 0u);
  }
  const std::string fields_in_another_order =
      R"({"__metadata__":{},"a":{"data_offsets":[0,0],"shape":[0],"dtype":"I8"}})";
  const std::string reordered = file_of(fields_in_another_order, 0);
  const Safetensors empty = parse(reordered);
  EXPECT_EQ(empty.at("a").bytes.size(), 0u);
  // Data in another order than the names, and not aligned.
  const std::string header =
      "{" + entry("a", "F32", "[]", "[1,5]") + "," + entry("b", "U8", "[1]", "[0,1]") + "}";
  const std::string file = file_of(header, 5);
  const Safetensors parsed = parse(file);
  EXPECT_EQ(static_cast<int>(parsed.at("a").bytes[0]), 1);
  EXPECT_EQ(static_cast<int>(parsed.at("b").bytes[0]), 0);
}

TEST(Safetensors, RefusesWhatIsWrongInTheHeader) {
  const std::string headers[] = {
      "",
      "[]",
      "{",
      "{}x",
      "{\"a\":1}",
      "{\"a\":{}}",
      "{\"\":{}}",
      "{\"\xFF\":{}}",
      "{\"__metadata__\":{\"a\":1}}",
      "{\"__metadata__\":{\"a\":{}}}",
      "{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}",
      "{\"__metadata__\":{},\"__metadata__\":{}}",
      std::string(100000, '['),
      "{\"a\":" + std::string(100000, '['),
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1}})",
      R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":["F32"],"shape":[1],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[1]}})",
      one("F32", "[-1]", "[0,4]"),
      one("F32", "[1.0]", "[0,4]"),
      one("F32", "[[1]]", "[0,4]"),
      one("F32", "1", "[0,4]"),
      one("F32", "null", "[0,4]"),
      one("F32", "[1]", "[0,4,8]"),
      one("F32", "[1]", "[0]"),
      one("F32", "[18446744073709551615]", "[0,4]"),
      two("a", "[0,1]", "a", "[1,2]", "[1]"),
  };
  for (const std::string& header : headers)
    EXPECT_EQ(code_of(file_of(header, 4)), "E0610") << header.substr(0, 200);
  // Padding is spaces: where zeros lie, something overwrote it, and the data behind it.
  EXPECT_EQ(code_of(file_of("{}" + std::string(6, '\0'), 0)), "E0610");
  std::string huge = file_of("{}", 0);
  huge[7] = '\x7F';  // a header length near 2^63
  EXPECT_EQ(code_of(huge), "E0610");
  EXPECT_EQ(code_of("1234567"), "E0610");
}

TEST(Safetensors, APointerOfGitLfsIsNamed) {
  EXPECT_EQ(
      code_of("version https://git-lfs.github.com/spec/v1\noid sha256:7b6f\nsize 988097824\n"),
      "E0616");
}

TEST(Safetensors, RefusesWhatIsWrongInSizes) {
  EXPECT_EQ(code_of(file_of(one("F8_E4M3", "[4]", "[0,4]"), 4)), "E0611");
  EXPECT_EQ(code_of(file_of(one("F32", "[1]", "[0,8]"), 8)), "E0611");
  EXPECT_EQ(code_of(file_of(one("F32", "[1]", "[4,0]"), 4)), "E0611");
  EXPECT_EQ(code_of(file_of(one("F32", "[2]", "[0,8]"), 4)), "E0611");
  // 2^62 * 4 wraps to 0 in 64 bits, and a zero extent must not hide it.
  EXPECT_EQ(code_of(file_of(one("F32", "[4611686018427387904]", "[0,0]"), 0)), "E0611");
  EXPECT_EQ(code_of(file_of(one("F32", "[0,4611686018427387904]", "[0,0]"), 0)), "E0611");
  EXPECT_EQ(code_of(file_of(two("a", "[0,2]", "b", "[1,3]", "[2]"), 3)), "E0612");
  EXPECT_EQ(code_of(file_of(two("a", "[0,1]", "b", "[2,3]", "[1]"), 3)), "E0612");
  EXPECT_EQ(code_of(file_of(one("U8", "[1]", "[1,2]"), 2)), "E0612");
  EXPECT_EQ(code_of(file_of(one("U8", "[1]", "[0,1]"), 2)), "E0612");
  EXPECT_EQ(code_of(file_of("{}", 1)), "E0612");
}

TEST(Safetensors, CutAndFlippedFilesNeverCrash) {
  TemporaryFolder folder;
  const float data[6] = {1, 2, 3, 4, 5, 6};
  const auto bytes = std::as_bytes(std::span(data));
  const std::vector<TensorView> tensors = {{"w", {DType::F32, {2, 3}}, bytes},
                                           {"n", {DType::U8, {3}}, bytes.first(3)}};
  write_safetensors(folder / "a", tensors, {{"k", "v"}});
  const std::string good = read_file(folder / "a");
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_NE(code_of(good.substr(0, length)), "accepted") << length;
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string bad = good;
    for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips)
      bad[random() % (good.size() - bytes.size() - 3)] = static_cast<char>(random());
    code_of(bad);  // accepted or DataError; a crash or another exception fails the test
  }
}

TEST(SafetensorsWriter, TheRealReaderAgrees) {
  const std::string python = judge_python_with("safetensors.torch");
  if (python.empty()) GTEST_SKIP() << "JUDGE_PYTHON names no Python with safetensors and torch";
  TemporaryFolder folder;
  const float f32[6] = {1, 2, 3, 4, 5, -6.5f};
  const std::int64_t i64[2] = {-1, std::int64_t{1} << 40};
  const std::uint16_t bf16[1] = {0x3FC0};
  const std::uint8_t bits[3] = {1, 0, 1};
  write_safetensors(folder / "a",
                    std::vector<TensorView>{
                        {"weight \xC3\xA9", {DType::F32, {2, 3}}, std::as_bytes(std::span(f32))},
                        {"i", {DType::I64, {2}}, std::as_bytes(std::span(i64))},
                        {"b", {DType::BF16, {}}, std::as_bytes(std::span(bf16))},
                        {"flags", {DType::Bool, {3, 1}}, std::as_bytes(std::span(bits))},
                        {"none", {DType::F16, {0, 4}}, {}}},
                    {{"format", "pt"}, {"step", "500"}});
  TemporaryFolder::put(folder / "read.py", R"(
import sys
import torch
from safetensors import safe_open
from safetensors.torch import load_file
t = load_file(sys.argv[1])
assert sorted(t) == ["b", "flags", "i", "none", "weight \u00e9"], sorted(t)
assert t["weight \u00e9"].tolist() == [[1, 2, 3], [4, 5, -6.5]]
assert t["i"].tolist() == [-1, 1 << 40] and t["i"].dtype == torch.int64
assert t["b"].item() == 1.5 and t["b"].dtype == torch.bfloat16 and t["b"].shape == ()
assert t["flags"].tolist() == [[True], [False], [True]]
assert t["none"].shape == (0, 4) and t["none"].dtype == torch.float16
with safe_open(sys.argv[1], "pt") as f:
    assert f.metadata() == {"format": "pt", "step": "500"}
)");
  EXPECT_EQ(complaint_of(python, folder / "read.py", (folder / "a").string()), "");
}

TEST(SafetensorsWriter, RefusesWhatCannotBeWritten) {
  TemporaryFolder folder;
  const TensorType scalar{DType::U8, {}};
  const TensorType symbolic{DType::U8, {Dim::symbolic("B", 4)}};
  const std::vector<std::vector<TensorEntry>> bad = {{{"a", scalar}, {"a", scalar}},
                                                     {{"", scalar}},
                                                     {{"__metadata__", scalar}},
                                                     {{"\xFF", scalar}},
                                                     {{"a", symbolic}}};
  for (const auto& entries : bad)
    EXPECT_THROW(SafetensorsWriter(folder / "a", entries, {}), UserError);
  SafetensorsWriter writer(folder / "a", {{"a", scalar}}, {});
  EXPECT_THROW(writer.finish(), UserError);
  const std::byte two_bytes[2] = {};
  EXPECT_THROW(writer.write(two_bytes), UserError);
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
}

}  // namespace
}  // namespace aloft
