// split_corpus of corpus.h.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/corpus.h"

namespace aloft {
namespace {

// The first place at or after `at` that is not inside a UTF-8 sequence.
std::uint64_t next_character(const CorpusFile& file, std::uint64_t at) {
  char bytes[3];
  const std::size_t got = InputFile(file.path).read_at(at, bytes);
  std::size_t inside = 0;  // of a character that began before
  while (inside < got && (bytes[inside] & 0xC0) == 0x80) ++inside;
  return at + inside;
}

void split_by_position(const Corpus& corpus, double fraction, CorpusSplit& split) {
  const CorpusFile& file = corpus.files[0];
  const double kept = std::floor(static_cast<double>(file.size) * (1 - fraction));
  const std::uint64_t cut =
      std::min(file.size, next_character(file, static_cast<std::uint64_t>(kept)));
  split.train.push_back({0, 0, cut});
  if (cut < file.size) split.validation.push_back({0, cut, file.size});
}

// Files in the order of their hash go to validation while that brings it nearer to its share.
void split_by_file(const Corpus& corpus, double fraction, std::uint64_t seed, CorpusSplit& split) {
  const std::size_t count = corpus.files.size();
  std::vector<std::pair<std::uint64_t, std::size_t>> order;
  for (std::size_t i = 0; i < count; ++i) order.emplace_back(hash64(corpus.files[i].name, seed), i);
  std::sort(order.begin(), order.end());

  const double wanted = fraction * static_cast<double>(corpus.bytes());
  double taken = 0;
  std::vector<bool> validates(count);
  std::size_t validating = 0;
  for (const auto& [hash, i] : order) {
    const double size = static_cast<double>(corpus.files[i].size);
    if (validating + 1 == count || taken + size / 2 > wanted) continue;
    validates[i] = true;
    taken += size;
    ++validating;
  }
  if (validating == 0) {  // every file is too large for the share; the smallest is the nearest
    std::size_t smallest = order[0].second;
    for (const auto& [hash, i] : order)
      if (corpus.files[i].size < corpus.files[smallest].size) smallest = i;
    validates[smallest] = true;
  }
  for (std::size_t i = 0; i < count; ++i)
    (validates[i] ? split.validation : split.train).push_back({i, 0, corpus.files[i].size});
}

}  // namespace

CorpusSplit split_corpus(const Corpus& corpus, double fraction, std::uint64_t seed) {
  if (!(fraction >= 0 && fraction < 1))
    throw UserError("E0512", "the share for validation is out of range")
        .saw(shortest(fraction))
        .need("0 <= share < 1");
  CorpusSplit split;
  if (fraction > 0 && corpus.files.size() == 1) {
    split_by_position(corpus, fraction, split);
  } else if (fraction > 0) {
    split_by_file(corpus, fraction, seed, split);
  } else {
    for (std::size_t i = 0; i < corpus.files.size(); ++i)
      split.train.push_back({i, 0, corpus.files[i].size});
  }
  return split;
}

std::uint64_t bytes_of(std::span<const TextPart> parts) {
  std::uint64_t sum = 0;
  for (const TextPart& part : parts) sum += part.end - part.begin;
  return sum;
}

}  // namespace aloft
