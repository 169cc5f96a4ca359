#include "data/idx.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace aloft {
namespace {

DataError wrong(const Path& path, const std::string& saw, const std::string& need) {
  return DataError("E0533", "an IDX file cannot be read").at(path.string()).saw(saw).need(need);
}

// What stands behind the magic number's third byte.
enum class Element : unsigned char { U8 = 8, I8 = 9, I16 = 11, I32 = 12, F32 = 13, F64 = 14 };

std::size_t bytes_of(Element e) {
  switch (e) {
    case Element::U8:
    case Element::I8:
      return 1;
    case Element::I16:
      return 2;
    case Element::I32:
    case Element::F32:
      return 4;
    case Element::F64:
      return 8;
  }
  return 0;
}

template <class T>
T big_endian(const char* at) {
  unsigned char bytes[sizeof(T)];
  std::memcpy(bytes, at, sizeof(T));
  for (std::size_t i = 0; i < sizeof(T) / 2; ++i) std::swap(bytes[i], bytes[sizeof(T) - 1 - i]);
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// A file whose header fits its length.
class Idx {
 public:
  explicit Idx(const Path& path) : path_(path), file_(path) {
    const std::string_view text = file_.text();
    if (text.size() >= 2 && text[0] == '\x1f' && text[1] == '\x8b')
      throw wrong(path, "a file that is compressed by gzip", "the file itself: gunzip it");
    constexpr std::size_t kMagic = 4;
    if (text.size() < kMagic || text[0] != 0 || text[1] != 0 || !take_type(text[2]))
      throw wrong(path, "no header of IDX", "two bytes of 0, a type, a rank, extents");
    const auto rank = static_cast<unsigned char>(text[3]);
    at_ = kMagic + 4 * std::size_t{rank};
    if (text.size() < at_)
      throw wrong(path, "a file that ends in its header", std::to_string(at_) + " bytes of it");
    double elements = 1;
    for (unsigned i = 0; i < rank; ++i) {
      const auto extent = big_endian<std::uint32_t>(text.data() + kMagic + 4 * std::size_t{i});
      extents_.push_back(extent);
      elements *= extent;
    }
    const double want = elements * static_cast<double>(bytes_of(type_));
    if (static_cast<double>(text.size() - at_) != want)
      throw wrong(path, std::to_string(text.size() - at_) + " bytes of elements",
                  shortest(want) + ", as the header says");
  }

  const std::vector<std::int64_t>& extents() const { return extents_; }
  double operator[](std::size_t i) const {
    const char* p = file_.text().data() + at_ + i * bytes_of(type_);
    switch (type_) {
      case Element::U8:
        return static_cast<unsigned char>(*p);
      case Element::I8:
        return static_cast<signed char>(*p);
      case Element::I16:
        return big_endian<std::int16_t>(p);
      case Element::I32:
        return big_endian<std::int32_t>(p);
      case Element::F32:
        return static_cast<double>(big_endian<float>(p));
      case Element::F64:
        return big_endian<double>(p);
    }
    return 0;
  }
  DataError refuse(const std::string& saw, const std::string& need) const {
    return wrong(path_, saw, need);
  }

 private:
  bool take_type(char byte) {
    for (const Element e :
         {Element::U8, Element::I8, Element::I16, Element::I32, Element::F32, Element::F64})
      if (static_cast<char>(e) == byte) {
        type_ = e;
        return true;
      }
    return false;
  }

  Path path_;
  MappedFile file_;
  Element type_ = Element::U8;
  std::size_t at_ = 0;
  std::vector<std::int64_t> extents_;
};

std::string text_of(const std::vector<std::int64_t>& extents) {
  std::string out;
  for (const std::int64_t e : extents) out += (out.empty() ? "" : " x ") + std::to_string(e);
  return out.empty() ? "a single number" : out;
}

}  // namespace

ArrayData read_idx(const Path& images, const Path& labels, float scale) {
  const Idx x(images), y(labels);
  const auto& e = x.extents();
  if (e.size() != 3 && e.size() != 4)
    throw x.refuse(text_of(e), "images: n x height x width, or n x channels x height x width");
  if (y.extents().size() != 1) throw y.refuse(text_of(y.extents()), "labels: n");
  if (y.extents()[0] != e[0])
    throw y.refuse(std::to_string(y.extents()[0]) + " labels",
                   std::to_string(e[0]) + ", as many as images in " + images.string());
  ArrayData data;
  data.shape = e.size() == 3 ? std::vector<std::int64_t>{1, e[1], e[2]}
                             : std::vector<std::int64_t>{e[1], e[2], e[3]};
  data.features = data.shape[0] * data.shape[1] * data.shape[2];
  if (e[0] == 0 || data.features == 0) throw x.refuse(text_of(e), "one image or more");
  data.values.resize(static_cast<std::size_t>(e[0] * data.features));
  for (std::size_t i = 0; i < data.values.size(); ++i) {
    data.values[i] = static_cast<float>(x[i]) * scale;
    if (!std::isfinite(data.values[i]))
      throw x.refuse("element " + std::to_string(i) + " is " + shortest(x[i]), "finite numbers");
  }
  data.labels.resize(static_cast<std::size_t>(e[0]));
  for (std::size_t i = 0; i < data.labels.size(); ++i) {
    const double label = y[i];
    if (!(label >= 0 && label <= std::numeric_limits<std::int32_t>::max()) ||
        label != std::floor(label))
      throw y.refuse("label " + std::to_string(i) + " is " + shortest(label),
                     "whole numbers from 0 on");
    data.labels[i] = static_cast<std::int32_t>(label);
  }
  return data;
}

}  // namespace aloft
