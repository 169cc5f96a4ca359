// Files with the elements of one tensor: torch.save's and numpy.save's.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "files/npy.h"
#include "files/torch_file.h"
#include "files/zip_entry.h"

namespace aloft {
namespace {

using Shape = std::vector<std::int64_t>;

std::string corpus(const char* name) { return read_file(Path("tests/fuzz/corpus") / name); }
std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s)); }

TEST(TorchTensor, IsReadWithoutRunningAnything) {
  const std::string text = corpus("torch_file/tensor.pt");
  const TorchFile file = TorchFile::parse(bytes_of(text), "tensor.pt");
  const auto t = file.tensor(file.root());
  ASSERT_TRUE(t);
  EXPECT_EQ(t->storage, "torch FloatStorage");
  EXPECT_EQ(t->shape, Shape{32});
  EXPECT_EQ(t->strides, Shape{1});
  const auto data = zip_entry(bytes_of(text), "/data/" + t->key, "tensor.pt");
  ASSERT_TRUE(data);
  EXPECT_EQ(data->size(), 32 * sizeof(float));
}

TEST(TorchTensor, IsNoneOfOtherValues) {
  const std::string text = corpus("torch_file/state.pt");
  const TorchFile file = TorchFile::parse(bytes_of(text), "state.pt");
  EXPECT_FALSE(file.tensor(file.root()));
}

TEST(TorchTensor, ElementsThatWereChangedAreRefused) {
  std::string text = corpus("torch_file/tensor.pt");
  const auto data = zip_entry(bytes_of(text), "/data/0", "tensor.pt");
  ASSERT_TRUE(data);
  text[static_cast<std::size_t>(data->data() - bytes_of(text).data())] ^= 1;
  try {
    zip_entry(bytes_of(text), "/data/0", "tensor.pt");
    FAIL();
  } catch (const DataError& e) {
    EXPECT_EQ(e.code(), "E0832");
  }
  EXPECT_FALSE(zip_entry(bytes_of(text), "/data/1", "tensor.pt"));
}

TEST(Npy, HasShapeOrderAndData) {
  const std::string rows = corpus("npy/floats.npy"), columns = corpus("npy/columns.npy");
  const auto a = parse_npy(bytes_of(rows)), b = parse_npy(bytes_of(columns));
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->type, "<f4");
  EXPECT_EQ(a->shape, (Shape{2, 3}));
  EXPECT_EQ(a->strides, (Shape{3, 1}));
  EXPECT_EQ(a->data.size(), 6 * sizeof(float));
  EXPECT_EQ(b->type, "<f8");
  EXPECT_EQ(b->strides, (Shape{1, 2}));
  const std::string one = corpus("npy/one.npy"), none = corpus("npy/none.npy");
  EXPECT_EQ(parse_npy(bytes_of(one))->shape, Shape{});
  EXPECT_EQ(parse_npy(bytes_of(none))->shape, (Shape{0, 3}));
}

TEST(Npy, RefusesWhatIsCutOrAnother) {
  const std::string text = corpus("npy/floats.npy");
  for (const std::size_t size : {0, 5, 7, 9, 40})
    EXPECT_FALSE(parse_npy(bytes_of(text.substr(0, size)))) << size;
  std::string negative = text;
  negative.replace(negative.find("(2, 3)"), 6, "(-2,3)");
  EXPECT_FALSE(parse_npy(bytes_of(negative)));
}

}  // namespace
}  // namespace aloft
