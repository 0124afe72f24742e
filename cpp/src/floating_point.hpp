#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace elastic_rank {

/// The processor's default floating-point mode for a scope. Libraries built with -ffast-math set
/// "denormals are zero" for every thread that loads them; selection would then take denormals for
/// equal, and give other answers than in a process without them. Cost: a few cycles; the register
/// is written only when it differs.
class DefaultFloatingPoint {
 public:
  DefaultFloatingPoint(const DefaultFloatingPoint&) = delete;
  DefaultFloatingPoint& operator=(const DefaultFloatingPoint&) = delete;
#if defined(__SSE2__)
  DefaultFloatingPoint() noexcept : found_(_mm_getcsr()) {
    if ((found_ & kControl) != kDefault) _mm_setcsr(kDefault);
  }
  ~DefaultFloatingPoint() {
    if ((found_ & kControl) != kDefault) _mm_setcsr(found_);
  }

 private:
  static constexpr unsigned kControl = ~0x3fu;  // all but the sticky exception flags
  static constexpr unsigned kDefault =
      0x1f80;  // exceptions masked, round to nearest, denormals kept
  unsigned found_;
#else
  DefaultFloatingPoint() noexcept {}
#endif
};

}  // namespace elastic_rank
