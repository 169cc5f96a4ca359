// Scalars for TensorBoard: event files as it reads them, written a record at a time.
//
// A file is a sequence of TFRecords: length (8 bytes), masked CRC32C of the length (4), the data,
// masked CRC32C of the data (4); the data is an Event message of TensorFlow's event.proto. The
// first event says "brain.Event:2".
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"

namespace aloft {

class TensorBoardWriter {
 public:
  // Creates FOLDER/events.out.tfevents.<seconds>.<host>.<process>.<n>; a run that is resumed adds a
  // file of its own to the folder. `wall_time`: seconds since 1970, now where it is negative.
  // EnvironmentError E0603, E0604.
  explicit TensorBoardWriter(const Path& folder, double wall_time = -1);

  void scalar(std::string_view tag, double value, std::int64_t step, double wall_time = -1);
  // Tells TensorBoard to forget what earlier files say about `step` and later: a run goes on there.
  void restart_at(std::int64_t step, double wall_time = -1);
  // What was written becomes visible to readers. Not fsynced: curves are not checkpoints.
  void flush();
  const Path& path() const { return path_; }

 private:
  void record(std::string_view event);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  Path path_;
  std::unique_ptr<std::FILE, Close> file_;
};

// CRC-32C (Castagnoli), and TFRecord's masking of it.
std::uint32_t crc32c(std::string_view bytes);
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace aloft
