// Core ML's arrays as contiguous elements, and the other way round.
#pragma once

#import <CoreML/CoreML.h>

#include "backends/assets/library.h"

namespace mote::coreml {

// An NSError as a sentence.
Status error_of(const char* what, NSError* error);
NSString* text_of(const std::string& text);

// An array of a port's shape over elements that it does not own. Errors: kInternal.
Result<MLMultiArray*> array_over(const assets::Port& port, const assets::Elements& elements);
// Copies an array to elements of a port. Errors: kInternal for another shape or dtype.
Status copy_from(MLMultiArray* array, const assets::Port& port, assets::Elements* elements);
// The same of the part of a state with these sizes, from its beginning.
Status copy_part_from(MLMultiArray* array, const assets::Port& port, std::span<const int64_t> sizes,
                      assets::Elements* elements);
Status copy_part_to(MLMultiArray* array, const assets::Port& port, std::span<const int64_t> sizes,
                    const assets::Elements& elements);

}  // namespace mote::coreml
