#pragma once

#include <cstdint>
#include <span>

#include "elastic_rank/latency_sketch.hpp"
#include "elastic_rank/scratch.hpp"
#include "elastic_rank/status.hpp"

namespace elastic_rank {

/// Wire form of a latency sketch, version 1, little-endian:
///
///     "ERLS"  u8 version  f64 relative error  varint refused  varint pairs
///     if pairs > 0: f64 min  f64 max  pairs x (varint cell step, varint count)
///     u32 FNV-1a of all bytes before it
///
/// Cells rise; a step is the distance to the cell before, less one, and the first pair's is its
/// cell. Counts are at least 1. Varints are LEB128 in their shortest form, so that a sketch has one
/// encoding. A new layout gets a new version number; a reader refuses what it does not know.
inline constexpr std::uint8_t kLatencyWireVersion = 1;

/// @param bytes where the bytes lie, in the scratch.
Status encode_latency(const LatencySketch& sketch, std::span<const std::uint8_t>* bytes,
                      Scratch& scratch) noexcept;

/// Checks every field before it answers: lengths, checksum, order, ranges, that the extremes lie in
/// the outermost cells and that the counts can be added.
/// @return invalid_argument for anything that `encode_latency` would not have written.
Status decode_latency(std::span<const std::uint8_t> bytes, double* relative_error,
                      LatencyCounts* counts, Scratch& scratch) noexcept;

}  // namespace elastic_rank
