#pragma once
// All ops. One header a family.
#include <cutaway/autograd/ops/activation.h>
#include <cutaway/autograd/ops/arrange.h>
#include <cutaway/autograd/ops/attention.h>
#include <cutaway/autograd/ops/cast.h>
#include <cutaway/autograd/ops/compare.h>
#include <cutaway/autograd/ops/conv.h>
#include <cutaway/autograd/ops/einsum.h>
#include <cutaway/autograd/ops/elementary.h>
#include <cutaway/autograd/ops/linear.h>
#include <cutaway/autograd/ops/matmul.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/pool.h>
#include <cutaway/autograd/ops/reduce.h>
#include <cutaway/autograd/ops/scan.h>
#include <cutaway/autograd/ops/shape.h>
