#import "backends/coreml/arrays.h"

#include <algorithm>
#include <optional>

#include "backends/assets/strided.h"

namespace mote::coreml {
namespace {

using assets::Elements;
using assets::Port;

std::optional<MLMultiArrayDataType> type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return MLMultiArrayDataTypeFloat32;
    case DType::kFloat16: return MLMultiArrayDataTypeFloat16;
    case DType::kInt32: return MLMultiArrayDataTypeInt32;
    default: return std::nullopt;
  }
}

std::vector<int64_t> integers(NSArray<NSNumber*>* numbers) {
  std::vector<int64_t> found;
  for (NSNumber* number in numbers) found.push_back(number.longLongValue);
  return found;
}

NSArray<NSNumber*>* numbers(std::span<const int64_t> integers) {
  NSMutableArray<NSNumber*>* found = [NSMutableArray array];
  for (const int64_t integer : integers) [found addObject:@(integer)];
  return found;
}

std::vector<int64_t> contiguous_strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

Status check(MLMultiArray* array, const Port& port) {
  const bool fits = array != nil && type_of(port.dtype) == array.dataType && integers(array.shape) == port.shape;
  MOTE_REQUIRE(fits, Code::kInternal, "Core ML gives %s with another shape or dtype", port.name.c_str());
  return {};
}

}  // namespace

Status error_of(const char* what, NSError* error) {
  const char* text = error == nil ? nullptr : error.localizedDescription.UTF8String;
  std::string said = text == nullptr ? "it does not say why" : text;
  std::replace(said.begin(), said.end(), '\n', ' ');
  return {Code::kInternal, std::string("Core ML cannot ") + what + ": " + said};
}

NSString* text_of(const std::string& text) { return [NSString stringWithUTF8String:text.c_str()]; }

Result<MLMultiArray*> array_over(const Port& port, const Elements& elements) {
  const std::optional<MLMultiArrayDataType> type = type_of(port.dtype);
  MOTE_REQUIRE(type.has_value(), Code::kInternal, "%s: Core ML has no inputs of that dtype", port.name.c_str());
  NSError* error = nil;
  // Core ML only reads inputs.
  MLMultiArray* array = [[MLMultiArray alloc] initWithDataPointer:const_cast<std::byte*>(elements.data())
                                                            shape:numbers(port.shape)
                                                         dataType:*type
                                                          strides:numbers(contiguous_strides(port.shape))
                                                      deallocator:nil
                                                            error:&error];
  if (array == nil) return error_of(("take " + port.name).c_str(), error);
  return array;
}

Status copy_part_from(MLMultiArray* array, const Port& port, std::span<const int64_t> sizes, Elements* elements) {
  MOTE_RETURN_IF_ERROR(check(array, port));
  const std::vector<int64_t> strides = integers(array.strides);
  [array getBytesWithHandler:^(const void* bytes, NSInteger) {
    assets::gather(bytes, sizes, strides, dtype_bytes(port.dtype), elements->data());
  }];
  return {};
}

Status copy_from(MLMultiArray* array, const Port& port, Elements* elements) {
  return copy_part_from(array, port, port.shape, elements);
}

Status copy_part_to(MLMultiArray* array, const Port& port, std::span<const int64_t> sizes, const Elements& elements) {
  MOTE_RETURN_IF_ERROR(check(array, port));
  [array getMutableBytesWithHandler:^(void* bytes, NSInteger, NSArray<NSNumber*>* strides) {
    assets::scatter(elements.data(), sizes, integers(strides), dtype_bytes(port.dtype), bytes);
  }];
  return {};
}

}  // namespace mote::coreml
