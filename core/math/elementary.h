#pragma once
// All scalar functors of floating-point ops; kernels include this one.
#include <cutaway/core/math/error_function.h>
#include <cutaway/core/math/exponential.h>
#include <cutaway/core/math/rounding.h>
#include <cutaway/core/math/trig.h>
#include <cutaway/core/math/wide.h>
