#include "data/tokenizers/sentencepiece_model.h"

#include <sentencepiece_processor.h>

#include <exception>

namespace aloft {

DataError unusable_model(const std::string& name, const std::string& saw, const std::string& need) {
  return DataError("E0507", "not a usable SentencePiece model").at(name).saw(saw).need(need);
}

void open_model(sentencepiece::SentencePieceProcessor& into, const std::string& bytes,
                const std::string& name) {
  std::string problem;
  // The library refuses by a status; its table of pieces throws, of pieces with a zero byte.
  try {
    const auto status = into.LoadFromSerializedProto(bytes);
    if (!status.ok())
      problem = status.ToString();
    else if (into.GetPieceSize() <= 0)
      problem = "no pieces";
  } catch (const std::exception& e) {
    problem = e.what();
  }
  if (!problem.empty())
    throw unusable_model(name, problem, "a model file written by SentencePiece");
}

}  // namespace aloft
