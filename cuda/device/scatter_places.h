#pragma once
#include <type_traits>

#include <cutaway/core/kernels/index.h>
#include <cutaway/cuda/device/walk.h>

// Where the values of a scatter go.
namespace cutaway::cuda::CUTAWAY_TARGET {

// Walk: places of the result that differ not in `dim` [0], source [1], result but for `dim` [2].
template <class I>
struct ScatterPlaces {
  Walk<I, 3> walk;
  const int64_t* index;
  int64_t n, along, out_along;  // steps in `dim`: of a place, of the result
};

template <class T>
KERNEL fill_array(T* out, T value, int64_t n) {
  const int64_t i = thread_number();
  if (i < n) global<T>(out)[i] = value;
}
template <class T>
void fill(T* out, T value, int64_t n) {
  if (n > 0) launch(one_thread_each("fill", n), fill_array<T>, out, value, n);
}

// What a scatter needs to know of its shape.
struct ScatterShape {
  int64_t n = 1, places = 1;  // values; places they can go to
  int64_t place_strides[kMaxRank] = {}, out_strides[kMaxRank] = {};
  int64_t along = 0;
  bool narrow;

  explicit ScatterShape(const ScatterArgs& a) {
    for (int d = a.rank - 1; d >= 0; --d) {
      if (d == a.dim) along = places;
      place_strides[d] = d == a.dim ? 0 : places;
      out_strides[d] = d == a.dim ? 0 : a.out_strides[d];
      places *= d == a.dim ? a.n : a.sizes[d];
      n *= a.sizes[d];
    }
    narrow = fits32(n) && fits32(places) && fits32(extent(a.rank, a.sizes, out_strides)) &&
             fits32(extent(a.rank, a.sizes, a.src_strides));
  }
  template <class I>
  ScatterPlaces<I> places_of(const ScatterArgs& a) const {
    return {walk_of<I, 3>(a.rank, a.sizes, {place_strides, a.src_strides, out_strides}), a.index, n,
            along, a.out_strides[a.dim]};
  }
};

}  // namespace cutaway::cuda::CUTAWAY_TARGET
