// States of apex's loss scalers in files of torch.save, in each form that it has had.
#include "files/torch_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "checkpoint/apex_file.h"
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

}  // namespace
}  // namespace aloft
