#pragma once
// Everything: tensors, ops and derivatives, layers, optimisers, schedules, data.
#include <cutaway/autograd/autocast.h>
#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/checkpoint.h>
#include <cutaway/autograd/function.h>
#include <cutaway/autograd/functional.h>
#include <cutaway/autograd/gradcheck.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/autograd/record.h>
#include <cutaway/core/error.h>
#include <cutaway/core/parallel.h>
#include <cutaway/core/rng.h>
#include <cutaway/core/tensor.h>
#include <cutaway/datasets/loader.h>
#include <cutaway/nn/nn.h>
#include <cutaway/nn/optim/optimizer.h>
#include <cutaway/nn/sched/schedule.h>
