#include "kernels/support/contract.h"

#include <algorithm>

#include "kernels/formats.h"

namespace mote {

namespace {

constexpr Code kBad = Code::kInvalidProgram;
constexpr int64_t kMaxExtent = int64_t{1} << 42;  // elements from the first to the last along one dimension

std::string sizes_text(std::span<const int64_t> sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(sizes[i]);
  return text + "]";
}

Status expect_well_formed(const Tensor& tensor, const char* kind, size_t index) {
  MOTE_REQUIRE(tensor.rank >= 0 && tensor.rank <= kMaxRank, kBad, "%s %zu has rank %d: must be 0..%d", kind, index,
               tensor.rank, kMaxRank);
  int64_t count = 1;
  for (int dim = 0; dim < tensor.rank; ++dim) {
    const int64_t size = tensor.size(dim);
    MOTE_REQUIRE(size >= 0 && size <= kMaxTensorElements, kBad, "%s %zu: sizes[%d] = %lld: must be 0..2^40", kind,
                 index, dim, static_cast<long long>(size));
    MOTE_REQUIRE(!__builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count) && count <= kMaxTensorElements,
                 kBad, "%s %zu has more than 2^40 elements", kind, index);
    const int64_t limit = kMaxExtent / std::max<int64_t>(size - 1, 1);
    MOTE_REQUIRE(tensor.stride(dim) >= 0 && tensor.stride(dim) <= limit, kBad,
                 "%s %zu: strides[%d] = %lld: must be 0..%lld", kind, index, dim,
                 static_cast<long long>(tensor.stride(dim)), static_cast<long long>(limit));
  }
  return Status();
}

}  // namespace

Sizes Sizes::of(const Tensor& tensor) {
  Sizes sizes;
  for (int dim = 0; dim < tensor.rank; ++dim) sizes.push(tensor.size(dim));
  return sizes;
}

Status expect_operands(const Call& call, size_t required, size_t most, size_t outputs) {
  MOTE_REQUIRE(call.inputs.size() >= required && call.inputs.size() <= most, kBad, "%zu inputs: must be %zu..%zu",
               call.inputs.size(), required, most);
  MOTE_REQUIRE(call.outputs.size() == outputs, kBad, "%zu outputs: must be %zu", call.outputs.size(), outputs);
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    MOTE_REQUIRE(call.inputs[i] != nullptr || i >= required, kBad, "input %zu is absent: it is not optional", i);
    if (call.inputs[i] != nullptr) MOTE_RETURN_IF_ERROR(expect_well_formed(*call.inputs[i], "input", i));
  }
  for (size_t i = 0; i < outputs; ++i) {
    MOTE_REQUIRE(call.outputs[i] != nullptr, kBad, "output %zu is absent: it is not optional", i);
    MOTE_RETURN_IF_ERROR(expect_well_formed(*call.outputs[i], "output", i));
  }
  return Status();
}

Status expect_present(const Call& call, size_t input, const char* name) {
  MOTE_REQUIRE(optional_input(call, input) != nullptr, kBad, "%s (input %zu) is absent: it is not optional", name,
               input);
  return Status();
}

Status expect_dtype(const Tensor& tensor, const char* name, std::initializer_list<DType> accepted) {
  MOTE_REQUIRE(tensor.bits == 0, kBad, "%s is quantised (%d bits): must be dense", name, tensor.bits);
  if (std::find(accepted.begin(), accepted.end(), tensor.dtype) != accepted.end()) return Status();
  std::string names;
  for (const DType dtype : accepted) names += (names.empty() ? "" : ", ") + std::string(dtype_name(dtype));
  return Status(kBad, format("%s has dtype %s: must be %s", name, dtype_name(tensor.dtype), names.c_str()));
}

Status expect_rank(const Tensor& tensor, const char* name, int low, int high) {
  MOTE_REQUIRE(tensor.rank >= low && tensor.rank <= high, kBad, "%s has rank %d: must be %d..%d", name, tensor.rank,
               low, high);
  return Status();
}

Status expect_sizes(const Tensor& tensor, const char* name, std::span<const int64_t> sizes) {
  const Sizes actual = Sizes::of(tensor);
  MOTE_REQUIRE(std::ranges::equal(actual.span(), sizes), kBad, "%s has sizes %s: must be %s", name,
               sizes_text(actual.span()).c_str(), sizes_text(sizes).c_str());
  return Status();
}

Status expect_parameter(const Tensor& tensor, const char* name, std::initializer_list<int64_t> sizes) {
  MOTE_RETURN_IF_ERROR(expect_dtype(tensor, name, {DType::kFloat32}));
  MOTE_RETURN_IF_ERROR(expect_sizes(tensor, name, sizes));
  MOTE_REQUIRE(tensor.is_contiguous(), kBad, "%s is strided: must be contiguous", name);
  return Status();
}

Status expect_weight(const Tensor& tensor, const char* name, int rank) {
  MOTE_RETURN_IF_ERROR(expect_rank(tensor, name, rank, rank));
  if (tensor.bits == 0) {
    MOTE_RETURN_IF_ERROR(expect_dtype(tensor, name, {DType::kFloat32, DType::kFloat16, DType::kBFloat16}));
    MOTE_REQUIRE(tensor.is_contiguous(), kBad, "%s is strided: must be contiguous", name);
    return Status();
  }
  MOTE_REQUIRE(tensor.dtype == DType::kInt8, kBad, "%s has multipliers of %s: must be int8", name,
               dtype_name(tensor.dtype));
  const char* error = tile_error(tensor.bits, tensor.group_size, tensor.scales);
  MOTE_REQUIRE(error == nullptr, kBad, "%s: bits = %d, group_size = %d, scale_columns = %d: %s", name, tensor.bits,
               tensor.group_size, tensor.scales.columns, error);
  const int64_t unit = column_unit(tensor.group_size, tensor.scales);
  MOTE_REQUIRE(tensor.size(-1) % unit == 0, kBad, "%s has %lld columns: must be a multiple of %lld", name,
               static_cast<long long>(tensor.size(-1)), static_cast<long long>(unit));
  return Status();
}

Status expect_output(const Call& call, size_t index, DType dtype, std::span<const int64_t> sizes) {
  const Tensor& output = *call.outputs[index];
  const std::string name = "output " + std::to_string(index);
  MOTE_RETURN_IF_ERROR(expect_dtype(output, name.c_str(), {dtype}));
  MOTE_RETURN_IF_ERROR(expect_sizes(output, name.c_str(), sizes));
  MOTE_REQUIRE(output.is_contiguous(), kBad, "%s is strided: must be contiguous", name.c_str());
  return Status();
}

Result<int64_t> integer_in(const Call& call, std::string_view name, int64_t low, int64_t high) {
  MOTE_ASSIGN(const int64_t value, call.integer(name));
  MOTE_REQUIRE(value >= low && value <= high, kBad, "attribute '%.*s' = %lld: must be %lld..%lld",
               static_cast<int>(name.size()), name.data(), static_cast<long long>(value), static_cast<long long>(low),
               static_cast<long long>(high));
  return value;
}

Result<int64_t> integer_or(const Call& call, std::string_view name, int64_t fallback, int64_t low, int64_t high) {
  if (call.find(name) == nullptr) return fallback;
  return integer_in(call, name, low, high);
}

Result<int> dim_in(const Call& call, std::string_view name, int rank) {
  MOTE_ASSIGN(const int64_t dim, integer_in(call, name, 0, std::max(rank, 1) - 1));
  return static_cast<int>(dim);
}

Result<double> number_or(const Call& call, std::string_view name, double fallback) {
  if (call.find(name) == nullptr) return fallback;
  return call.number(name);
}

Result<int> choice(const Call& call, std::string_view name, std::span<const std::string_view> accepted) {
  if (call.find(name) == nullptr) return 0;
  MOTE_ASSIGN(const std::string_view text, call.text(name));
  const auto found = std::find(accepted.begin(), accepted.end(), text);
  if (found != accepted.end()) return static_cast<int>(found - accepted.begin());
  std::string names;
  for (const std::string_view one : accepted) names += (names.empty() ? "'" : ", '") + std::string(one) + "'";
  return Status(kBad, format("attribute '%.*s' = '%.*s': must be %s", static_cast<int>(name.size()), name.data(),
                             static_cast<int>(text.size()), text.data(), names.c_str()));
}

Result<std::span<const int64_t>> integers_in(const Call& call, std::string_view name, int64_t low, int64_t high,
                                             size_t most) {
  const Attribute* attribute = call.find(name);
  const int length = static_cast<int>(name.size());
  MOTE_REQUIRE(attribute != nullptr, kBad, "attribute '%.*s' is missing: must be a list of integers", length,
               name.data());
  MOTE_REQUIRE(attribute->numbers.empty() && attribute->text.empty() && attribute->integers.size() <= most, kBad,
               "attribute '%.*s' must be a list of at most %zu integers", length, name.data(), most);
  for (const int64_t value : attribute->integers) {
    MOTE_REQUIRE(value >= low && value <= high, kBad, "attribute '%.*s' holds %lld: must be %lld..%lld", length,
                 name.data(), static_cast<long long>(value), static_cast<long long>(low), static_cast<long long>(high));
  }
  return attribute->integers;
}

}  // namespace mote
