// cut_events and events_up_to of tensorboard.h: read event files record by record.
#include <cstring>
#include <optional>

#include "base/folder.h"
#include "files/tensorboard.h"

namespace aloft {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{8} << 30;

std::optional<std::uint64_t> varint(std::string_view bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64 && at < bytes.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    value |= std::uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

struct Event {
  std::int64_t step = 0;
  bool is_scalar = false;
  std::string_view tag;  // of its first value
};

// The first field `wanted` of a message that consists of fields with a length; "" where that is not
// what begins it.
std::string_view first_field(std::string_view bytes, std::uint64_t wanted) {
  std::size_t at = 0;
  const auto key = varint(bytes, at);
  const auto length = key ? varint(bytes, at) : std::nullopt;
  if (!length || *key != (wanted << 3 | 2) || *length > bytes.size() - at) return {};
  return bytes.substr(at, *length);
}

// The fields of an Event that matter; nothing where it is none.
std::optional<Event> read_event(std::string_view bytes) {
  Event event;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto key = varint(bytes, at);
    if (!key) return std::nullopt;
    const std::uint64_t field = *key >> 3;
    switch (*key & 7) {
      case 0: {
        const auto value = varint(bytes, at);
        if (!value) return std::nullopt;
        if (field == 2) event.step = static_cast<std::int64_t>(*value);
        break;
      }
      case 1:
        at += 8;
        break;
      case 2: {
        const auto length = varint(bytes, at);
        if (!length || *length > bytes.size() - at) return std::nullopt;
        if (field == 5) {  // Summary: values; Value: its tag comes first
          event.is_scalar = true;
          event.tag = first_field(first_field(bytes.substr(at, *length), 1), 1);
        }
        at += *length;
        break;
      }
      case 5:
        at += 4;
        break;
      default:
        return std::nullopt;
    }
    if (at > bytes.size()) return std::nullopt;
  }
  return event;
}

template <class T>
T number_at(std::string_view bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// The record that begins at `at`, or nothing where it is cut short or damaged.
std::optional<std::string_view> record_at(std::string_view file, std::size_t at) {
  constexpr std::size_t kHead = 12, kTail = 4;
  if (file.size() - at < kHead + kTail) return std::nullopt;
  const auto length = number_at<std::uint64_t>(file, at);
  if (masked_crc32c(file.substr(at, 8)) != number_at<std::uint32_t>(file, at + 8) ||
      length > file.size() - at - kHead - kTail)
    return std::nullopt;
  const std::string_view data = file.substr(at + kHead, length);
  if (masked_crc32c(data) != number_at<std::uint32_t>(file, at + kHead + length))
    return std::nullopt;
  return file.substr(at, kHead + length + kTail);
}

void cut_file(const Path& path, std::int64_t step, std::string_view but) {
  const std::string file = read_file(path, kMostBytes);
  const std::string kept = events_up_to(file, step, but);
  std::error_code ignored;
  if (kept.empty())
    std::filesystem::remove(path, ignored);
  else if (kept != file)
    write_file_atomic(path, kept);
}

}  // namespace

std::string events_up_to(std::string_view file, std::int64_t step, std::string_view but) {
  std::string kept;
  bool has_scalar = false;
  for (std::size_t at = 0; at < file.size();) {
    const auto record = record_at(file, at);
    if (!record) break;
    at += record->size();
    const auto event = read_event(record->substr(12, record->size() - 16));
    if (!event || event->step > step) continue;
    if (!but.empty() && event->step == step && event->tag.starts_with(but)) continue;
    kept += *record;
    has_scalar |= event->is_scalar;
  }
  return has_scalar ? kept : std::string();
}

void cut_events(const Path& folder, std::int64_t step, std::string_view but) {
  for (const Path& path : list_folder(folder))
    if (path.filename().string().starts_with(kEventFile) && is_file(path))
      cut_file(path, step, but);
}

}  // namespace aloft
