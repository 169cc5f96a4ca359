// Scalars and histograms for TensorBoard: event files as it reads them, written a record at a time.
//
// A file is a sequence of TFRecords: length (8 bytes), masked CRC32C of the length (4), the data,
// masked CRC32C of the data (4); the data is an Event message of TensorFlow's event.proto. The
// first event says "brain.Event:2".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/append_file.h"

namespace aloft {

// How the names of event files begin.
inline constexpr const char* kEventFile = "events.out.tfevents.";

// How many values lie below each limit and not below the one before; as many limits as counts.
struct Histogram {
  std::vector<double> limits, counts;
  double least = 0, largest = 0;  // of the values
  double sum = 0, squares = 0;    // of all of them, and of their squares
};

class TensorBoardWriter {
 public:
  // Creates FOLDER/events.out.tfevents.<seconds>.<host>.<process>.<n>; a run that is resumed adds a
  // file of its own to the folder. `wall_time`: seconds since 1970, now where it is negative.
  // EnvironmentError E0603, E0604.
  explicit TensorBoardWriter(const Path& folder, double wall_time = -1);

  void scalar(std::string_view tag, double value, std::int64_t step, double wall_time = -1);
  void histogram(std::string_view tag, const Histogram& values, std::int64_t step,
                 double wall_time = -1);
  // Tells TensorBoard to forget what earlier files say about `step` and later: a run goes on there.
  void restart_at(std::int64_t step, double wall_time = -1);
  // What was written becomes visible to readers; survives a power loss. EnvironmentError E0603.
  void flush() { file_.flush(); }
  void sync() { file_.sync(); }
  const Path& path() const { return file_.path(); }

 private:
  void value(const std::string& value, std::int64_t step, double wall_time);
  void record(std::string_view event);

  AppendFile file_;
};

// Removes from the event files of a folder what they say of steps after `step`, and what a crash
// cut short; files in which nothing is left. Of `step` itself, what has a tag that begins with
// `but` goes too, unless that is empty. EnvironmentError E0603, E0606.
void cut_events(const Path& folder, std::int64_t step, std::string_view but = {});
// The same of the bytes of one file; empty where no scalar is left.
std::string events_up_to(std::string_view file, std::int64_t step, std::string_view but = {});

// CRC-32C (Castagnoli), and TFRecord's masking of it.
std::uint32_t crc32c(std::string_view bytes);
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace aloft
