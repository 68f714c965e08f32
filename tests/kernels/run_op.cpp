// run_op: runs the op that standard input describes and prints each of its outputs on a line, for the cases in Python
// (tests/contracts/ops.py). Words, in this order, each line any number of times but the first:
//   OP
//   input float32|int64 RANK SIZES... ELEMENTS... | absent
//   integer NAME VALUE | integers NAME COUNT VALUES... | number NAME VALUE | text NAME VALUE
//   output float32|int64 RANK SIZES...
#include <cstdio>
#include <iostream>
#include <string>

#include "tests/kernels/harness.h"

namespace mote::test {
namespace {

constexpr int kThreads = 2;

template <typename T>
T next() {
  T value{};
  std::cin >> value;
  return value;
}

Shape next_shape() {
  Shape shape(next<size_t>());
  for (int64_t& size : shape) size = next<int64_t>();
  return shape;
}

template <typename T>
std::vector<T> next_elements(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  std::vector<T> elements(static_cast<size_t>(count));
  for (T& element : elements) element = next<T>();
  return elements;
}

Owned next_tensor() {
  const bool is_float = next<std::string>() == "float32";
  const Shape shape = next_shape();
  return is_float ? floats(shape, next_elements<float>(shape)) : integers(shape, next_elements<int64_t>(shape));
}

void print(const Owned& output) {
  for (const double value : to_doubles(output)) std::printf(" %.9g", value);
  std::printf("\n");
}

int run() {
  OpCall call(next<std::string>());
  size_t num_outputs = 0;
  for (std::string word; std::cin >> word;) {
    if (word == "input") {
      call.input(next_tensor());
    } else if (word == "absent") {
      call.absent();
    } else if (word == "output") {
      const DType dtype = next<std::string>() == "float32" ? DType::kFloat32 : DType::kInt64;
      call.output(dtype, next_shape());
      ++num_outputs;
    } else {
      const auto name = next<std::string>();
      if (word == "integer") call.integers(name, {next<int64_t>()});
      if (word == "integers") call.integers(name, next_shape());
      if (word == "number") call.number(name, next<double>());
      if (word == "text") call.text(name, next<std::string>());
    }
  }
  if (const Status status = call.run(kThreads); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  for (size_t i = 0; i < num_outputs; ++i) print(call.result(i));
  return 0;
}

}  // namespace
}  // namespace mote::test

int main() { return mote::test::run(); }
