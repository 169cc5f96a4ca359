// States of apex's loss scalers in files of torch.save, in each form that it has had.
#include "files/torch_file.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <initializer_list>

#include "base/error.h"
#include "checkpoint/apex_file.h"
#include "checkpoint/grad_scaler_file.h"
#include "temporary_folder.h"

namespace aloft {
namespace {

const Path kFiles = "tests/fuzz/corpus/torch_file";

std::string code_of(const Path& path) {
  try {
    amp::read_state_dict(path);
  } catch (const Error& e) {
    return e.code();
  }
  return "";
}

TEST(TorchFile, HasTheStateOfApexsLossScalers) {
  const amp::AmpState want{{{32768, 1999}, {0.5, 0}, {16777216, 70000}}};
  for (const char* name : {"state.pt", "checkpoint.pt", "state_before_zip.pt",
                           "checkpoint_before_zip.pt", "plain.pkl"})
    EXPECT_EQ(amp::read_state_dict(kFiles / name), want) << name;
}

// As torch itself wrote them, behind seven clean steps.
TEST(TorchFile, HasTheStateOfTorchsGradScaler) {
  amp::GradScalerState want;
  want.scale = 1024;
  want.growth_interval = 100;
  want.growth_tracker = 7;
  for (const char* name : {"grad_scaler.pt", "with_grad_scaler.pt"})
    EXPECT_EQ(amp::read_grad_scaler_state(kFiles / name), want) << name;
  EXPECT_THROW(amp::read_grad_scaler_state(kFiles / "state.pt"), DataError);  // apex's
  EXPECT_THROW(amp::read_state_dict(kFiles / "grad_scaler.pt"), DataError);
}

TEST(TorchFile, TellsNumbersFromTheRest) {
  const std::string bytes = read_file(kFiles / "checkpoint.pt");
  const TorchFile file = TorchFile::parse(std::as_bytes(std::span(bytes)), "checkpoint.pt");
  const auto number = [&](const char* key) { return file.number(*file.find(file.root(), key)); };
  EXPECT_EQ(file.size(file.root()), 6u);
  EXPECT_EQ(number("epoch"), 7);
  EXPECT_EQ(number("done"), 0);
  EXPECT_EQ(number("name"), std::nullopt);
  EXPECT_EQ(number("model"), std::nullopt);
  EXPECT_EQ(file.find(file.root(), "nothing"), std::nullopt);
  const auto weight = file.find(*file.find(file.root(), "model"), "weight");
  EXPECT_EQ(file.number(weight.value()), std::nullopt);
}

// Cut anywhere it is refused; nothing is read behind its end.
TEST(TorchFile, RefusesWhatIsCutOrAnother) {
  for (const char* name : {"state.pt", "state_before_zip.pt", "plain.pkl"}) {
    const std::string bytes = read_file(kFiles / name);
    const std::size_t needed = std::strcmp(name, "state_before_zip.pt") == 0 ? 300 : bytes.size();
    for (std::size_t cut = 0; cut < needed; ++cut) {
      const std::vector<char> part(bytes.begin(), bytes.begin() + static_cast<long>(cut));
      EXPECT_THROW(TorchFile::parse(std::as_bytes(std::span(part)), name), DataError)
          << name << " " << cut;
    }
  }
  const TemporaryFolder folder;
  EXPECT_EQ(code_of(folder.path() / "absent.pt"), "E0601");
  write_file_atomic(folder.path() / "other.pkl", std::as_bytes(std::span("\x80\x02}.", 4)));
  EXPECT_EQ(code_of(folder.path() / "other.pkl"), "E0832");
  write_file_atomic(folder.path() / "text.json", std::as_bytes(std::span("{\"amp\": 1}", 10)));
  EXPECT_EQ(code_of(folder.path() / "text.json"), "E0832");
}

// In the zip's directory as well: refused, or of no consequence.
TEST(TorchFile, RefusesAFlippedBit) {
  const std::string whole = read_file(kFiles / "state.pt");
  const std::size_t begin = whole.find("\x80\x02"), end = begin + 186;  // of data.pkl
  ASSERT_EQ(whole.at(end - 1), '.');
  const TemporaryFolder folder;
  const Path path = folder.path() / "state.pt";
  const amp::AmpState want = amp::read_state_dict(kFiles / "state.pt");
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    std::ofstream(path, std::ios::binary) << bytes;
    const std::string code = code_of(path);
    if (code.empty() && (bit / 8 < begin || bit / 8 >= end))
      EXPECT_EQ(amp::read_state_dict(path), want) << bit;
    else
      EXPECT_EQ(code, "E0832") << bit;
  }
}

// Names of two words on the stack, as protocol 4 has them: nodes move while the words are read.
TEST(TorchFile, NamesOfWordsOnTheStack) {
  const std::string named = "\x8c\x04math\x8c\x03tau\x93";
  for (int before = 0; before < 3; ++before) {  // a name is three nodes
    std::string bytes = "\x80\x04";
    for (int i = 0; i < before; ++i) bytes += "N0";
    for (int i = 0; i < 6000; ++i) bytes += named + "0";
    bytes += "}" + named + "K\x07s.";
    const TorchFile file = TorchFile::parse(std::as_bytes(std::span(bytes)), "names");
    EXPECT_EQ(file.size(file.root()), 1u) << before;
  }
}

// Some hundred bytes that would need more memory than there is: a name made of itself, twice, 40
// times over; calls that each copy what a long tuple has.
TEST(TorchFile, RefusesWhatGrowsBeyondItsFile) {
  std::string doubled =
      "\x80\x04\x8c\x01"
      "aq" +
      std::string(1, '\0');
  for (int i = 0; i < 40; ++i) doubled += std::string("h\0h\0\x93q\0", 7);
  doubled += '.';
  EXPECT_THROW(TorchFile::parse(std::as_bytes(std::span(doubled)), "doubled"), DataError);
  std::string calls = "\x80\x04(";
  constexpr int kParts = 100'000, kCalls = 100'000;
  for (int i = 0; i < kParts; ++i) calls += 'N';
  calls += std::string("tq\0cm\nf\nq\1", 10);
  for (int i = 0; i < kCalls; ++i) calls += std::string("h\1h\0R0", 6);
  calls += '.';
  const TorchFile file = TorchFile::parse(std::as_bytes(std::span(calls)), "calls");
  EXPECT_FALSE(file.tensor(file.root()).has_value());
}

// A loss scaler of a pickle of amp.state_dict().
struct Saved {
  const char* key;
  double scale, unskipped;
};
std::string pickled(std::initializer_list<Saved> scalers) {
  std::string out = "\x80\x02}";
  const auto word = [&](std::string_view text) {
    out += {'X', static_cast<char>(text.size()), 0, 0, 0};
    out += text;
  };
  const auto number = [&](double value) {
    out += 'G';
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>(bits >> shift & 0xFF);
  };
  for (const Saved& s : scalers) {
    word(s.key);
    out += '}';
    word("loss_scale"), number(s.scale), out += 's';
    word("unskipped"), number(s.unskipped), out += 's';
    out += 's';
  }
  return out + '.';
}

TEST(TorchFile, RefusesScalersThatApexDoesNotHave) {
  const TemporaryFolder folder;
  const Path path = folder.path() / "state.pkl";
  const auto code = [&](std::initializer_list<Saved> scalers) {
    const std::string bytes = pickled(scalers);
    write_file_atomic(path, std::as_bytes(std::span(bytes)));
    return code_of(path);
  };
  EXPECT_EQ(code({{"loss_scaler1", 4, 0}, {"loss_scaler0", 0.5, 0x1p53}, {"name", 0, -1}}), "");
  EXPECT_EQ(amp::read_state_dict(path), (amp::AmpState{{{0.5, std::int64_t{1} << 53}, {4, 0}}}));
  EXPECT_EQ(code({{"loss_scaler0", 2, 1}, {"loss_scaler2", 2, 1}}), "E0832");
  EXPECT_EQ(code({{"loss_scaler0", 2, 1}, {"loss_scaler9223372036854775807", 2, 1}}), "E0832");
  EXPECT_EQ(code({{"loss_scaler1", 2, 1}}), "E0832");
  EXPECT_EQ(code({{"name", 2, 1}}), "E0832");
  for (const double scale : {0.0, -2.0, double{INFINITY}, double{NAN}})
    EXPECT_EQ(code({{"loss_scaler0", 2, 1}, {"loss_scaler1", scale, 1}}), "E0832") << scale;
  for (const double unskipped : {-1.0, 0.5, 0x1p53 + 2, double{INFINITY}, double{NAN}})
    EXPECT_EQ(code({{"loss_scaler0", 2, unskipped}, {"loss_scaler1", 2, 1}}), "E0832") << unskipped;
}

}  // namespace
}  // namespace aloft
