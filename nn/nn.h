#pragma once
// All layers, initialisers and files of modules.
#include <cutaway/nn/files.h>
#include <cutaway/nn/init.h>
#include <cutaway/nn/layers/activation.h>
#include <cutaway/nn/layers/attention.h>
#include <cutaway/nn/layers/container.h>
#include <cutaway/nn/layers/conv.h>
#include <cutaway/nn/layers/dropout.h>
#include <cutaway/nn/layers/embedding.h>
#include <cutaway/nn/layers/linear.h>
#include <cutaway/nn/layers/norm.h>
#include <cutaway/nn/layers/pool.h>
#include <cutaway/nn/layers/recurrent.h>
#include <cutaway/nn/layers/reshape.h>
#include <cutaway/nn/layers/transformer.h>
#include <cutaway/nn/module.h>
