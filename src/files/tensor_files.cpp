#include "files/tensor_files.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "files/little_endian.h"
#include "files/zip_writer.h"

namespace aloft {

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// --- pickle, protocol 2

struct Pickle {
  std::string text = std::string("\x80\x02", 2);

  void global(std::string_view module, std::string_view name) {
    text += 'c';
    text += module;
    text += '\n';
    text += name;
    text += '\n';
  }
  void word(std::string_view w) {
    text += 'X';
    put_little(text, w.size(), 4);
    text += w;
  }
  void number(std::int64_t v) {
    text += '\x8a';  // LONG1
    text += '\x08';
    put_little(text, static_cast<std::uint64_t>(v), 8);
  }
  void numbers(std::span<const std::int64_t> all) {
    text += '(';
    for (const std::int64_t v : all) number(v);
    text += 't';
  }
};

std::string_view storage_name(DType t) {
  switch (t) {
    case DType::F64:
      return "DoubleStorage";
    case DType::F32:
      return "FloatStorage";
    case DType::BF16:
      return "BFloat16Storage";
    case DType::F16:
      return "HalfStorage";
    case DType::I64:
      return "LongStorage";
    case DType::I32:
      return "IntStorage";
    case DType::Bool:
      return "BoolStorage";
    case DType::I8:
      return "CharStorage";
    case DType::U8:
      return "ByteStorage";
  }
  throw InternalError("a type has its storage");
}

// torch._utils._rebuild_tensor_v2(storage, 0, shape, strides, False, OrderedDict())
std::string tensor_pickle(const TensorBytes& t, std::int64_t numel) {
  std::vector<std::int64_t> strides(t.shape.size(), 1);
  for (std::size_t d = t.shape.size(); d-- > 1;) strides[d - 1] = strides[d] * t.shape[d];
  Pickle p;
  p.global("torch._utils", "_rebuild_tensor_v2");
  p.text += "((";
  p.word("storage");
  p.global("torch", storage_name(t.type));
  p.word("0");
  p.word("cpu");
  p.number(numel);
  p.text += "tQ";  // the storage, which torch.load brings
  p.number(0);
  p.numbers(t.shape);
  p.numbers(strides);
  p.text += '\x89';
  p.global("collections", "OrderedDict");
  p.text += ")RtR.";
  return p.text;
}

std::int64_t numel_of(const TensorBytes& t) {
  std::int64_t n = 1;
  for (const std::int64_t extent : t.shape) n *= extent;
  ensure(static_cast<std::uint64_t>(n) * size_of(t.type) == t.bytes.size(),
         "a tensor has as many bytes as its shape says");
  return n;
}

std::string_view npy_type(DType t) {
  switch (t) {
    case DType::F64:
      return "<f8";
    case DType::F16:
      return "<f2";
    case DType::I64:
      return "<i8";
    case DType::I32:
      return "<i4";
    case DType::Bool:
      return "|b1";
    case DType::F32:
    case DType::BF16:
      return "<f4";
    case DType::I8:
      return "|i1";
    case DType::U8:
      return "|u1";
  }
  throw InternalError("a type has its name");
}

}  // namespace

void write_torch_tensor(const Path& path, const TensorBytes& tensor) {
  ensure(tensor.bytes.size() <= kMostOfTorchTensor, "a zip file's size has 32 bits");
  const std::int64_t numel = numel_of(tensor);
  ZipWriter zip(path);
  zip.add("archive/data.pkl", bytes_of(tensor_pickle(tensor, numel)));
  zip.add("archive/byteorder", bytes_of("little"));
  zip.add("archive/data/0", tensor.bytes);
  zip.add("archive/version", bytes_of("3\n"));
  zip.finish();
}

void write_npy(const Path& path, const TensorBytes& tensor) {
  const std::int64_t numel = numel_of(tensor);
  std::string shape;
  for (const std::int64_t extent : tensor.shape) shape += std::to_string(extent) + ", ";
  std::string header = "{'descr': '" + std::string(npy_type(tensor.type)) +
                       "', 'fortran_order': False, 'shape': (" + shape + "), }";
  constexpr std::size_t kBefore = 10, kAlign = 64;
  header.append((kAlign - (kBefore + header.size() + 1) % kAlign) % kAlign, ' ');
  header += '\n';
  std::string head("\x93NUMPY\x01\x00", 8);
  put_little(head, header.size(), 2);
  AtomicFile file(path);
  file.write(head + header);
  if (tensor.type != DType::BF16) {
    file.write(tensor.bytes);
  } else {
    constexpr std::int64_t kAtOnce = 1 << 16;
    std::vector<float> wide;
    for (std::int64_t i = 0; i < numel; i += kAtOnce) {
      wide.assign(static_cast<std::size_t>(std::min(kAtOnce, numel - i)), 0.0f);
      for (std::size_t k = 0; k < wide.size(); ++k) {
        std::uint16_t upper = 0;  // half of the f32
        std::memcpy(&upper, tensor.bytes.data() + (static_cast<std::size_t>(i) + k) * 2, 2);
        wide[k] = std::bit_cast<float>(std::uint32_t{upper} << 16);
      }
      file.write(std::as_bytes(std::span(wide)));
    }
  }
  file.commit_unflushed();
}

}  // namespace aloft
