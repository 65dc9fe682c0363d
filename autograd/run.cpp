#include <bit>
#include <utility>

#include <cutaway/autograd/anomaly.h>
#include <cutaway/autograd/autocast.h>
#include <cutaway/autograd/node.h>
#include <cutaway/autograd/op_watch.h>
#include <cutaway/core/trace.h>

namespace cutaway {
namespace {

thread_local OpWatch* watch = nullptr;

bool wants_grad(const Tensor& t) {
  if (!t.defined()) return false;
  const AutogradMeta* meta = t.impl()->meta;
  return meta && (meta->requires_grad || !meta->is_leaf);
}

// Sets what the thread is doing for the time of one op; an exception restores it too.
struct OpScope {
  Context& c;
  const char* op;
  explicit OpScope(const OpRecord& record, std::source_location site) : c(context()), op(c.op) {
    c.op = record.name;
    if (c.call_depth++ == 0) c.site = site;
  }
  ~OpScope() {
    --c.call_depth;
    c.op = op;
  }
};

// Which saved inputs some wanted gradient reads (OpRecord::cross).
uint32_t inputs_to_save(const OpRecord& op, uint32_t wanted) {
  if (!op.cross) return op.save_inputs;
  uint32_t keep = op.save_inputs;
  if (!(wanted & ~1u)) keep &= ~1u;
  if (!(wanted & 1u)) keep &= ~2u;
  return keep;
}

void record_node(const Call& c, uint32_t attr_bytes) {
  const OpRecord& op = c.op;
  uint32_t wanted = 0;
  for (int i = 0; i < c.num_inputs && i < 32; ++i) wanted |= uint32_t(wants_grad(c.in(i))) << i;
  const uint32_t keep = inputs_to_save(op, wanted);
  const uint32_t kept_inputs = op.save_inputs ? uint32_t(std::popcount(op.save_inputs)) : 0;
  const uint32_t kept_outputs = op.save_outputs ? uint32_t(std::popcount(op.save_outputs)) : 0;
  Node* n =
      new_node(&op, uint32_t(c.num_inputs), kept_inputs + kept_outputs + uint32_t(c.extras.size()),
               uint32_t(c.num_outputs), attr_bytes);
  NodePtr node(n);
  if (attr_bytes) __builtin_memcpy(const_cast<void*>(n->attrs()), c.attr_data, attr_bytes);
  for (int i = 0; i < c.num_inputs; ++i) {
    if (c.in(i).defined()) n->edges()[i] = gradient_edge(c.in(i));
  }
  Saved* s = n->saved().data();
  // A place for every input the record names, also for optional ones that were left out of the
  // call.
  for (int i = 0; op.save_inputs >> i; ++i) {
    if (!(op.save_inputs >> i & 1)) continue;
    if (keep >> i & 1 && c.has(i)) s->keep(c.in(i));
    ++s;
  }
  for (int i = 0; i < c.num_outputs && op.save_outputs >> i; ++i) {
    if (op.save_outputs >> i & 1) (s++)->keep(c.outputs[i]);
  }
  for (const Tensor& t : c.extras) (s++)->keep(t);
  for (int i = 0; i < c.num_outputs; ++i) {
    const Tensor& out = c.outputs[i];
    n->outputs()[i].set(out);
    const bool last = i + 1 == c.num_outputs;
    if (out.is_floating()) set_history(out, last ? std::move(node) : node, uint32_t(i));
  }
}

// Converts floating inputs to the compute type of the record (autocast). Cold: only in that mode.
std::vector<Tensor> autocast_inputs(const OpRecord& op, const Tensor* const* inputs, int n) {
  const DType low = DType(context().autocast - 1);
  std::vector<Tensor> cast;
  for (int i = 0; i < n; ++i) {
    const Tensor& t = *inputs[i];
    const DType from = op.compute == Compute::low ? DType::f32 : low;
    if (!t.defined() || t.dtype() != from) {
      cast.push_back(t);
    } else if (op.compute == Compute::low) {
      cast.push_back(detail::ConvertedParameters::convert(t, low));
    } else {
      cast.push_back(t.to(DType::f32));
    }
  }
  return cast;
}

}  // namespace

void run_op(const OpRecord& op, const Tensor* const* inputs, int n, uint32_t temporaries,
            const void* attrs, uint32_t attr_bytes, Tensor* outputs, std::source_location site,
            int num_outputs) {
  OpScope scope(op, site);
  std::vector<Tensor> cast;
  std::vector<const Tensor*> cast_pointers;
  if (scope.c.autocast && op.compute != Compute::keep) [[unlikely]] {
    cast = autocast_inputs(op, inputs, n);
    for (const Tensor& t : cast) cast_pointers.push_back(&t);
    inputs = cast_pointers.data();
    temporaries = 0;
  }
  // What is watched is kept: no operand may give its buffer to the result.
  if (scope.c.watched) [[unlikely]]
    temporaries = 0;
  bool record = false;
  if (scope.c.grad_enabled && op.backward) {
    for (int i = 0; i < n && !record; ++i) record = wants_grad(*inputs[i]);
  }
  Call call{.op = op,
            .inputs = inputs,
            .num_inputs = n,
            .attr_data = attrs,
            .outputs = outputs,
            .num_outputs = op.outputs ? op.outputs : num_outputs,
            .temporaries = temporaries,
            .record = record,
            .extras = {}};
  if (trace::enabled()) [[unlikely]] {
    trace::OpEvent event(op.name);
    event.inputs(inputs, n);
    op.forward(call);
    event.finish(outputs, call.num_outputs);
  } else {
    op.forward(call);
  }
  if (record) record_node(call, attr_bytes);
  if (scope.c.anomaly) [[unlikely]]
    check_forward_values(call);
  // Ops that a record's forward runs are part of that op.
  if (scope.c.watched && !scope.op) [[unlikely]]
    watch->seen(call, attr_bytes);
}

OpWatch* OpWatch::set(OpWatch* next) {
  OpWatch* before = std::exchange(watch, next);
  context().watched = next != nullptr;
  return before;
}

Tensor& Call::out(int i, const Shape& sizes, DType dtype) {
  for (int k = 0; k < num_inputs; ++k) {
    if (inputs[k]->defined()) return out(i, sizes, dtype, inputs[k]->device());
  }
  return out(i, sizes, dtype, kCpu);
}

Tensor& Call::out(int i, const Shape& sizes, DType dtype, Device device) {
  outputs[i] = empty(sizes, {.dtype = dtype, .device = device});
  return outputs[i];
}

Tensor& Call::out_like(int i, int k) {
  const Tensor& t = in(k);
  if (can_reuse(k)) {
    outputs[i] = make_view(t, t.layout());
    outputs[i].impl()->is_view = false;
    return outputs[i];
  }
  return out(i, t.sizes(), t.dtype(), t.device());
}

void Call::view(int i, const Tensor& base, const Layout& layout) {
  if (record) base.impl()->viewed = true;
  outputs[i] = make_view(base, layout);
}

bool Call::can_reuse(int i) const {
  if (!(temporaries >> i & 1)) return false;
  const TensorImpl* impl = inputs[i]->impl();
  const bool saved = record && (op.save_inputs >> i & 1);
  return impl->refs.load(std::memory_order_relaxed) == 1 && impl->storage && !impl->is_view &&
         impl->storage->refs.load(std::memory_order_relaxed) == 1 && impl->contiguous && !saved &&
         !impl->storage->owner;
}

void Call::require_dtype(int i) const {
  if (has(i) && !op.dtypes.has(in(i).dtype())) {
    throw DTypeError(op.name,
                     std::string("does not accept ") + name_of(in(i).dtype()) + "; got input " +
                         std::to_string(i) + " " + to_string(in(i).sizes()) + ", need one of " +
                         to_string(op.dtypes),
                     "convert with to(DType::f32)");
  }
}

void Call::require_same_device() const {
  const Tensor* first = nullptr;
  for (int i = 0; i < num_inputs; ++i) {
    if (!has(i)) continue;
    if (!first) first = inputs[i];
    if (in(i).device() != first->device()) {
      throw DeviceError(op.name,
                        "operands must be on one device; got " + to_string(first->device()) +
                            " and " + to_string(in(i).device()),
                        "move one of them with to(device)");
    }
  }
}

}  // namespace cutaway
