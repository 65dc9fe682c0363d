#pragma once
// All scalar functors of floating-point ops. Include this one from kernels.
#include <cutaway/core/math/error_function.h>
#include <cutaway/core/math/exponential.h>
