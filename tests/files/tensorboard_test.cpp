#include "files/tensorboard.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "files/judge_python.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

struct Point {
  std::string tag, version;
  float value = 0;
  double wall_time = 0;
  std::uint64_t step = 0, session = 0;
  std::vector<double> numbers = {}, limits = {}, counts = {};  // of a histogram
};

// An independent, strict reader of exactly what the writer may write.
class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}

  std::vector<Point> points() {
    std::vector<Point> all;
    std::size_t at = 0;
    while (at < bytes_.size()) {
      const std::string length_bytes = bytes_.substr(at, 8);
      const std::uint64_t length = fixed<std::uint64_t>(bytes_, at);
      EXPECT_EQ(fixed<std::uint32_t>(bytes_, at), masked_crc32c(length_bytes));
      EXPECT_LE(length, bytes_.size() - at);
      const std::string data = bytes_.substr(at, length);
      at += length;
      EXPECT_EQ(fixed<std::uint32_t>(bytes_, at), masked_crc32c(data));
      message(data, all.emplace_back(), 0);
    }
    return all;
  }

 private:
  template <class T>
  static T fixed(const std::string& from, std::size_t& at) {
    T value{};
    EXPECT_LE(at + sizeof value, from.size());
    std::memcpy(&value, from.data() + at, sizeof value);
    at += sizeof value;
    return value;
  }
  static std::uint64_t varint(const std::string& from, std::size_t& at) {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const unsigned char byte = static_cast<unsigned char>(from.at(at++));
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
  }
  // `path`: the field numbers of the enclosing messages, a decimal digit each.
  void message(const std::string& data, Point& out, int path) {
    for (std::size_t at = 0; at < data.size();) {
      const std::uint64_t key = varint(data, at);
      const int place = path * 10 + static_cast<int>(key >> 3);
      switch (key & 7) {
        case 0:
          (place == 2 ? out.step : out.session) = varint(data, at);
          break;
        case 1:
          if (place == 1)
            out.wall_time = fixed<double>(data, at);
          else
            out.numbers.push_back(fixed<double>(data, at));
          break;
        case 5:
          out.value = fixed<float>(data, at);
          break;
        default: {
          const std::size_t length = varint(data, at);
          const std::string inner = data.substr(at, length);
          at += length;
          if (place == 3) out.version = inner;
          if (place == 511) out.tag = inner;
          for (std::size_t i = 0; (place == 5156 || place == 5157) && i < inner.size();)
            (place == 5156 ? out.limits : out.counts).push_back(fixed<double>(inner, i));
          if (place == 5 || place == 51 || place == 515 || place == 7) message(inner, out, place);
        }
      }
    }
  }
  std::string bytes_;
};

TEST(Crc32c, KnownValues) {
  // RFC 3720, appendix B.4, and the usual check value.
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
}

TEST(TensorBoard, FilesHaveTheRightStructure) {
  TemporaryFolder folder;
  TensorBoardWriter writer(folder / "runs", 1700000000.5);
  writer.scalar("loss", 2.5, 1, 1700000001);
  writer.scalar("train/lr \xC3\xA9", 1e-3, std::int64_t{1} << 40, 1700000002);
  writer.restart_at(300, 1700000003);
  writer.flush();
  EXPECT_TRUE(writer.path().filename().string().starts_with("events.out.tfevents.1700000000."));
  const std::vector<Point> points = Reader(read_file(writer.path())).points();
  ASSERT_EQ(points.size(), 4u);
  EXPECT_EQ(points[0].version, "brain.Event:2");
  EXPECT_EQ(points[0].wall_time, 1700000000.5);
  EXPECT_EQ(points[1].tag, "loss");
  EXPECT_EQ(points[1].value, 2.5f);
  EXPECT_EQ(points[1].step, 1u);
  EXPECT_EQ(points[2].tag, "train/lr \xC3\xA9");
  EXPECT_EQ(points[2].step, std::uint64_t{1} << 40);
  EXPECT_EQ(points[3].session, 1u);
  EXPECT_EQ(points[3].step, 300u);
}

TEST(TensorBoard, HistogramsHaveTheRightStructure) {
  TemporaryFolder folder;
  TensorBoardWriter writer(folder.path(), 1);
  writer.histogram("exponents", {{0.5, 1.5, 2.5}, {3, 0, 1}, -1, 2, 2, 4}, 7, 2);
  writer.flush();
  const Point p = Reader(read_file(writer.path())).points().at(1);
  EXPECT_EQ(p.tag, "exponents");
  EXPECT_EQ(p.step, 7u);
  EXPECT_EQ(p.numbers, (std::vector<double>{-1, 2, 4, 2, 4}));  // least, largest, how many, sums
  EXPECT_EQ(p.limits, (std::vector<double>{0.5, 1.5, 2.5}));
  EXPECT_EQ(p.counts, (std::vector<double>{3, 0, 1}));
  cut_events(folder.path(), 6);  // is cut as scalars are
  EXPECT_FALSE(path_exists(writer.path()));
}

TEST(TensorBoard, TwoWritersInOneFolderDoNotMeet) {
  TemporaryFolder folder;
  const TensorBoardWriter a(folder.path(), 1), b(folder.path(), 1);
  EXPECT_NE(a.path(), b.path());
  TemporaryFolder::put(folder / "file", "");
  EXPECT_THROW(TensorBoardWriter(folder / "file"), EnvironmentError);
}

TEST(TensorBoard, WhatLiesBeyondAStepOrIsTornIsCut) {
  TemporaryFolder folder;
  Path path, empty;
  {
    TensorBoardWriter writer(folder.path(), 1);
    for (int step = 1; step <= 9; ++step) writer.scalar("loss", step, step, 2);
    writer.restart_at(7, 3);
    path = writer.path();
    empty = TensorBoardWriter(folder.path(), 1).path();
  }
  const std::string whole = read_file(path);
  TemporaryFolder::put(path, whole + whole.substr(0, 11));  // a record that a crash cut short
  TemporaryFolder::put(folder / "other", whole);
  cut_events(folder.path(), 6);
  const std::vector<Point> points = Reader(read_file(path)).points();
  ASSERT_EQ(points.size(), 7u);
  for (std::size_t i = 1; i < points.size(); ++i) EXPECT_EQ(points[i].step, i);
  EXPECT_FALSE(std::filesystem::exists(empty));
  EXPECT_EQ(read_file(folder / "other"), whole);
  // Whatever byte is wrong, what stands before it stays, and nothing crashes.
  const std::string kept = read_file(path);
  for (std::size_t at = 0; at < kept.size(); at += 3) {
    std::string flipped = kept;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x21);
    TemporaryFolder::put(path, flipped);
    cut_events(folder.path(), 6);
    if (path_exists(path)) {
      const std::string left = read_file(path);
      EXPECT_LE(left.size(), at);
      EXPECT_EQ(left, kept.substr(0, left.size()));
    }
  }
}

TEST(TensorBoard, AnEvaluationOfTheLastStepIsCutByItsTag) {
  TemporaryFolder folder;
  Path path;
  {
    TensorBoardWriter writer(folder.path(), 1);
    for (int step = 5; step <= 6; ++step)
      for (const char* tag : {"train/loss", "validation/loss"}) writer.scalar(tag, 1, step, 2);
    path = writer.path();
  }
  cut_events(folder.path(), 6, "validation/");
  std::vector<std::string> tags;
  for (const Point& p : Reader(read_file(path)).points()) tags.push_back(p.tag);
  EXPECT_EQ(tags, (std::vector<std::string>{"", "train/loss", "validation/loss", "train/loss"}));
}

TEST(AppendFile, HoldsNothingBackForLong) {
  TemporaryFolder folder;
  AppendFile file(folder / "log");
  file.write("one\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(1050));
  file.write("two\n");
  EXPECT_EQ(read_file(folder / "log"), "one\ntwo\n");
}

TEST(AppendFile, KeepsWhatTheDiskDidNotTakeAndSaysSo) {
  TemporaryFolder folder;
  AppendFile file(folder / "log");
  file.write("one\n");
  EXPECT_EQ(read_file(folder / "log"), "");
  file.flush();
  file.write("two\n");
  file.sync();
  EXPECT_EQ(read_file(folder / "log"), "one\ntwo\n");
  AppendFile full("/dev/full");
  full.write("lost");
  for (int again = 0; again < 2; ++again) try {
      full.flush();
      FAIL() << "a full disk takes nothing";
    } catch (const EnvironmentError& e) {
      EXPECT_EQ(e.code(), "E0603");
      EXPECT_NE(std::string(e.what()).find("/dev/full"), std::string::npos);
      EXPECT_NE(std::string(e.what()).find("No space"), std::string::npos);
    }
  EXPECT_THROW(AppendFile(folder / "absent" / "log"), EnvironmentError);
}

TEST(TensorBoard, TheRealReaderAgrees) {
  const std::string python = judge_python_with("tensorboard");
  if (python.empty()) GTEST_SKIP() << "JUDGE_PYTHON names no Python with tensorboard";
  TemporaryFolder folder;
  {
    TensorBoardWriter first(folder / "run", 1700000000);
    for (int step = 1; step <= 50; ++step)
      first.scalar("loss", 1.0 / step, step, 1700000000 + step);
    first.histogram("exponents", {{0.5, 1.5}, {3, 1}, 0, 1, 1, 1}, 9, 1700000060);
  }
  {
    TensorBoardWriter second(folder / "run", 1700000100);
    second.restart_at(31, 1700000100);
    for (int step = 31; step <= 60; ++step) second.scalar("loss", 10, step, 1700000100 + step);
  }
  TemporaryFolder::put(folder / "read.py", R"(
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1])
events.Reload()
points = events.Scalars("loss")
assert [p.step for p in points] == list(range(1, 61)), [p.step for p in points]
assert abs(points[9].value - 0.1) < 1e-7 and points[9].wall_time == 1700000010
exponents = events.Histograms("exponents")
assert [h.step for h in exponents] == [9]
assert list(exponents[0].histogram_value.bucket) == [3, 1] and exponents[0].histogram_value.num == 4
assert all(p.value == 10 for p in points[30:])  # the first file's 31 to 50 are forgotten
)");
  EXPECT_EQ(complaint_of(python, folder / "read.py", (folder / "run").string()), "");
}

}  // namespace
}  // namespace aloft
