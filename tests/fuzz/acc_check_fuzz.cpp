// A dump.json of any bytes beside some tensors: refused, or each of its calls is made again and
// judged, or says why it is not.
#include <cstdint>

#include "base/error.h"
#include "temporary_folder.h"
#include "train/acc_check.h"

namespace {

using namespace aloft;

// numpy's file of an array of zeros and ones.
std::string npy(const std::string& type, const std::string& shape, std::size_t elements) {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(118 - 1, ' ');
  header += '\n';
  std::string file = std::string("\x93NUMPY\x01\x00", 8) + '\x76' + '\x00' + header;
  const bool is_f32 = type == "<f4";
  const std::string one = is_f32 ? std::string("\x00\x00\x80\x3f", 4) : std::string("\x01", 1);
  const std::size_t size = is_f32 ? 4 : 8;
  for (std::size_t i = 0; i < elements; ++i) {
    std::string element = i % 2 == 0 ? std::string() : one;
    element.resize(size, '\0');
    file += element;
  }
  return file;
}

const Path& folder() {
  static const TemporaryFolder made;
  static const Path ready = [] {
    Path tensors = made / "dump_tensor_data";
    make_folder(tensors);
    TemporaryFolder::put(tensors / "x.npy", npy("<f4", "(2, 3)", 6));
    TemporaryFolder::put(tensors / "w.npy", npy("<f4", "(3, 2)", 6));
    TemporaryFolder::put(tensors / "y.npy", npy("<f4", "(2, 2)", 4));
    TemporaryFolder::put(tensors / "s.npy", npy("<f4", "()", 1));
    TemporaryFolder::put(tensors / "i.npy", npy("<i8", "(2,)", 2));
    TemporaryFolder::put(tensors / "p.npy", npy("<f4", "(1, 1, 2, 2)", 4));
    return made.path();
  }();
  return ready;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Path file = folder() / "dump.json";
  TemporaryFolder::put(file, {reinterpret_cast<const char*>(data), size});
  try {
    for (const CheckedCall& call : check_calls(file).calls)
      ensure(!call.results.empty() || !call.unchecked.empty(), "a call is judged, or says why not");
  } catch (const DataError&) {
  }
  return 0;
}
