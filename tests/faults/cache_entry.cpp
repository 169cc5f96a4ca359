// Writes an entry of the plan cache: `faults_cache_entry FILE` takes the text of a compiled program
// from its standard input and gives it the key that FILE is named by, and its hash.
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "frontend/plan_cache.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "faults_cache_entry FILE < TEXT\n";
    return 2;
  }
  const aloft::Path file = argv[1];
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  std::ofstream out(file, std::ios::binary);
  out << aloft::entry_text(file.stem().string(), text);
  return out.flush() ? 0 : 1;
}
