// Tensors in files that Python reads, and the checksum that is in them.
#include "files/tensor_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "files/crc32.h"
#include "files/judge_python.h"
#include "files/torch_file.h"

namespace aloft {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Crc32, HasItsCheckValueHoweverItIsCut) {
  const std::string_view text = "123456789";
  EXPECT_EQ(crc32(bytes_of(text)), 0xCBF43926u);
  EXPECT_EQ(crc32({}), 0u);
  for (std::size_t cut = 0; cut <= text.size(); ++cut)
    EXPECT_EQ(crc32(bytes_of(text.substr(cut)), crc32(bytes_of(text.substr(0, cut)))), 0xCBF43926u);
}

class TensorFiles : public testing::Test {
 protected:
  TensorFiles() : folder_(testing::TempDir() + "tensor_files" + std::to_string(::getpid())) {
    make_folder(folder_);
  }
  ~TensorFiles() override { std::filesystem::remove_all(folder_); }

  // Of 2 x 3 elements, of which element i is i.
  static std::vector<std::byte> counted(DType type) {
    std::vector<std::byte> bytes(6 * size_of(type));
    for (std::size_t i = 0; i < 6; ++i) {
      const auto f = static_cast<float>(i);
      const double d = f;
      std::uint32_t word = 0;
      std::memcpy(&word, &f, 4);
      const std::uint16_t upper = word >> 16;
      const std::uint16_t halfs[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500};
      const auto whole = static_cast<std::int64_t>(type == DType::Bool ? i % 2 : i);
      const void* from = type == DType::F64    ? static_cast<const void*>(&d)
                         : type == DType::F32  ? static_cast<const void*>(&f)
                         : type == DType::BF16 ? static_cast<const void*>(&upper)
                         : type == DType::F16  ? static_cast<const void*>(&halfs[i])
                                               : static_cast<const void*>(&whole);
      std::memcpy(bytes.data() + i * size_of(type), from, size_of(type));
    }
    return bytes;
  }

  Path folder_;
};

TEST_F(TensorFiles, AreZipFilesThatOurReaderTakes) {
  const auto bytes = counted(DType::F32);
  write_torch_tensor(folder_ / "x.pt", {DType::F32, {2, 3}, bytes});
  const std::string file = read_file(folder_ / "x.pt");
  const TorchFile torch = TorchFile::parse(bytes_of(file), "x.pt");
  EXPECT_EQ(torch.number(torch.root()), std::nullopt);  // a tensor is no number
  std::string damaged = file;
  damaged[damaged.find("_rebuild_tensor")] = 'X';
  EXPECT_THROW(TorchFile::parse(bytes_of(damaged), "x.pt"), DataError);
}

TEST_F(TensorFiles, AreWhatTorchAndNumpyRead) {
  const std::string python = judge_python_with("torch");
  if (python.empty()) GTEST_SKIP() << "JUDGE_PYTHON names no Python with torch";
  for (const DType type : kAllDTypes) {
    const auto bytes = counted(type);
    const std::string name(name_of(type));
    write_torch_tensor(folder_ / (name + ".pt"), {type, {2, 3}, bytes});
    write_npy(folder_ / (name + ".npy"), {type, {2, 3}, bytes});
  }
  const std::vector<std::byte> one(4);
  write_torch_tensor(folder_ / "scalar.pt", {DType::F32, {}, one});
  write_torch_tensor(folder_ / "empty.pt", {DType::F32, {0, 3}, {}});
  write_npy(folder_ / "scalar.npy", {DType::F32, {}, one});
  write_file_atomic(folder_ / "check.py", std::string_view(R"(
import sys, numpy, torch
types = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16,
         "i64": torch.int64, "i32": torch.int32, "u8": torch.uint8, "i8": torch.int8,
         "bool": torch.bool}
for name, dtype in types.items():
    t = torch.load(f"{sys.argv[1]}/{name}.pt", weights_only=True)
    want = torch.arange(6).reshape(2, 3)
    want = (want % 2 if name == "bool" else want).to(dtype)
    assert t.dtype == dtype and torch.equal(t, want), (name, t)
    n = numpy.load(f"{sys.argv[1]}/{name}.npy", allow_pickle=False)
    assert n.dtype == (numpy.float32 if name == "bf16" else want.numpy().dtype), (name, n.dtype)
    assert n.shape == (2, 3) and (n == want.float().numpy()).all(), (name, n)
assert torch.load(f"{sys.argv[1]}/scalar.pt", weights_only=True).shape == ()
assert torch.load(f"{sys.argv[1]}/empty.pt", weights_only=True).shape == (0, 3)
assert numpy.load(f"{sys.argv[1]}/scalar.npy").shape == ()
)"));
  EXPECT_EQ(complaint_of(python, folder_ / "check.py", folder_.string()), "");
}

}  // namespace
}  // namespace aloft
