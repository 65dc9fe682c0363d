#pragma once
// All ops. One header a family.
#include <cutaway/autograd/ops/shape.h>
