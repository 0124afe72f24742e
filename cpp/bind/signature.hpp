#pragma once

#include <string>
#include <string_view>

namespace elastic_rank::bind {

/// One spelling for a C function type: "float(float*,int64,void*)".
///
/// Reads the names that Cython, SciPy and hand-written capsules carry ("float (float const *row,
/// long n, void *)") and numba's ("(float32*, int64, void*) -> float32"). Spaces, `const`, function
/// and parameter names do not count; `long`, `int64_t`, `npy_int64`, `Py_ssize_t` and the like are
/// one type. A type that is not known stays as written. Empty when the text is no function type.
std::string canonical_signature(std::string_view text);

}  // namespace elastic_rank::bind
