#pragma once
// All ops. One header a family.
#include <cutaway/autograd/ops/reduce.h>
#include <cutaway/autograd/ops/scan.h>
#include <cutaway/autograd/ops/shape.h>
