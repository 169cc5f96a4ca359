#include "files/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>

#include "base/error.h"

namespace aloft {
namespace {

// Protocol buffers by hand: the fields used do not justify the compiler and its runtime.
// Field numbers are those of tensorflow/core/util/event.proto and framework/summary.proto.
enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void put_key(std::string& out, int field, WireType type) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | type);
}

template <class T>
void put_fixed(std::string& out, int field, T value) {
  put_key(out, field, sizeof value == 8 ? kFixed64 : kFixed32);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_key(out, field, kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

void put_int(std::string& out, int field, std::int64_t value) {
  put_key(out, field, kVarint);
  put_varint(out, static_cast<std::uint64_t>(value));
}

double now() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since_1970).count();
}

// Event.wall_time = 1, Event.step = 2.
std::string event_at(double wall_time, std::int64_t step) {
  std::string event;
  put_fixed(event, 1, wall_time < 0 ? now() : wall_time);
  if (step != 0) put_int(event, 2, step);
  return event;
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "host";
}

constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    table[i] = crc;
  }
  return table;
}();

// A name that no other file of this process and second has.
Path new_file(const Path& folder, double wall_time) {
  static std::atomic<int> counter{0};
  make_folder(folder);
  return folder / fmt::format("{}{:010}.{}.{}.{}", kEventFile, static_cast<std::int64_t>(wall_time),
                              host_name(), ::getpid(), counter++);
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (char c : bytes) crc = crc >> 8 ^ kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~crc;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

TensorBoardWriter::TensorBoardWriter(const Path& folder, double wall_time)
    : file_(new_file(folder, wall_time < 0 ? now() : wall_time)) {
  std::string event = event_at(wall_time, 0);
  put_bytes(event, 3, "brain.Event:2");  // Event.file_version
  record(event);
}

void TensorBoardWriter::scalar(std::string_view tag, double value, std::int64_t step,
                               double wall_time) {
  std::string point;  // Summary.Value
  put_bytes(point, 1, tag);
  put_fixed(point, 2, static_cast<float>(value));  // simple_value
  this->value(point, step, wall_time);
}

void TensorBoardWriter::histogram(std::string_view tag, const Histogram& values, std::int64_t step,
                                  double wall_time) {
  const auto packed = [](const std::vector<double>& all) {
    return std::string(reinterpret_cast<const char*>(all.data()), all.size() * sizeof(double));
  };
  double count = 0;
  for (const double n : values.counts) count += n;
  std::string own;  // HistogramProto
  put_fixed(own, 1, values.least);
  put_fixed(own, 2, values.largest);
  put_fixed(own, 3, count);
  put_fixed(own, 4, values.sum);
  put_fixed(own, 5, values.squares);
  put_bytes(own, 6, packed(values.limits));
  put_bytes(own, 7, packed(values.counts));
  std::string point;  // Summary.Value
  put_bytes(point, 1, tag);
  put_bytes(point, 5, own);  // histo
  value(point, step, wall_time);
}

void TensorBoardWriter::value(const std::string& value, std::int64_t step, double wall_time) {
  std::string summary;
  put_bytes(summary, 1, value);
  std::string event = event_at(wall_time, step);
  put_bytes(event, 5, summary);  // Event.summary
  record(event);
}

void TensorBoardWriter::restart_at(std::int64_t step, double wall_time) {
  std::string log;
  put_int(log, 1, 1);  // SessionLog.status = START
  std::string event = event_at(wall_time, step);
  put_bytes(event, 7, log);  // Event.session_log
  record(event);
}

void TensorBoardWriter::record(std::string_view event) {
  const std::uint64_t length = event.size();
  std::string out(reinterpret_cast<const char*>(&length), sizeof length);
  const std::uint32_t length_crc = masked_crc32c(out), data_crc = masked_crc32c(event);
  out.append(reinterpret_cast<const char*>(&length_crc), sizeof length_crc);
  out += event;
  out.append(reinterpret_cast<const char*>(&data_crc), sizeof data_crc);
  file_.write(out);
}

}  // namespace aloft
