"""Good and hostile ONNX models for make_corpus.py, written field by field."""

import struct


def varint(n):
    n &= 2**64 - 1
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def data(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def tensor(name="w", dims=(2,), kind=1, raw=bytes(8), more=b""):
    sizes = b"".join(number(1, n) for n in dims)
    values = b"" if raw is None else data(9, raw)
    return sizes + number(2, kind) + data(8, name) + values + more


def value(name, kind=1, dims=(2,)):
    shape = b"".join(data(1, number(1, n) if isinstance(n, int) else data(2, n)) for n in dims)
    return data(1, name) + data(2, data(1, number(1, kind) + data(2, shape)))


def node(kind="Relu", inputs=("x",), outputs=("y",), attributes=()):
    return b"".join(data(1, s) for s in inputs) + b"".join(data(2, s) for s in outputs) + \
        data(3, "n") + data(4, kind) + b"".join(data(5, a) for a in attributes)


def graph(nodes=(), weights=(), more=b""):
    return b"".join(data(1, n) for n in nodes) + data(2, "g") + \
        b"".join(data(5, t) for t in weights) + data(11, value("x")) + data(12, value("y")) + more


def model(body=None, more=b""):
    return number(1, 8) + data(2, "corpus") + data(7, graph() if body is None else body) + \
        data(8, data(1, "") + number(2, 17)) + more


def weights(*tensors):
    return model(graph(weights=tensors))


def attribute(content, kind):
    return model(graph([node(attributes=[data(1, "a") + content + number(20, kind)])]))


def onnx_good():
    yield "good_small", model(), ""
    yield "good_node", model(graph([node(), node("Add", ("y", "w"), ("z",))], [tensor()])), ""
    yield "good_scalar", weights(tensor(dims=(), raw=bytes(4))), ""
    yield "good_nothing_in_it", weights(tensor(dims=(0, 3), raw=b"")), ""
    yield "good_floats", weights(tensor(raw=None, more=data(4, struct.pack("<2f", 1, 2)))), ""
    yield "good_int64s", weights(tensor(kind=7, raw=None, more=number(7, -1) + number(7, 3))), ""
    yield "good_halves", weights(tensor(kind=10, raw=None, more=data(5, varint(15360) * 2))), ""
    yield "good_uint16", weights(tensor(kind=4, raw=b"\xff\xff\x01\x00")), ""
    yield "good_metadata", model(more=data(14, data(1, "k") + data(2, "v"))), ""
    yield "good_unknown_fields", model(more=data(99, b"\xff") + number(98, 1)), ""
    yield "good_attributes", attribute(data(8, varint(1) + varint(2)), 7), ""
    yield "good_subgraph", attribute(data(6, graph()), 5), ""


def onnx_bad():
    yield "empty_file", b"", "no graph"
    yield "no_graph", number(1, 8), "no graph"
    yield "text", b"not a model at all", "protobuf"
    yield "cut_in_key", model() + b"\xff", "cut off"
    yield "cut_in_body", model()[:-5], "cut off"
    yield "number_without_end", b"\x08" + b"\xff" * 10, "more than 64 bits"
    yield "field_0", b"\x00\x01", "no field 0"
    yield "wire_type_3", b"\x0b\x0c", "unknown wire type 3"
    yield "length_of_2_to_63", b"\x3a" + varint(2**63), "are left"
    yield "graph_is_number", number(7, 1), "must be bytes"
    yield "name_with_zero", model(graph(more=data(2, b"a\x00b"))), "zero byte"
    yield "size_negative", weights(tensor(dims=(-1,))), "a size of -1"
    yield "sizes_wrap", weights(tensor(dims=(2**32, 2**32), raw=b"")), "too many elements"
    yield "sizes_huge", weights(tensor(dims=(2**40,), raw=b"")), "0 bytes"
    yield "sizes_huge_without_data", weights(tensor(dims=(2**40,), raw=None)), "0 values"
    yield "nine_dimensions", weights(tensor(dims=(1,) * 9, raw=bytes(4))), "9 dimensions"
    yield "raw_short", weights(tensor(raw=bytes(7))), "7 bytes"
    yield "raw_long", weights(tensor(raw=bytes(9))), "9 bytes"
    yield "values_few", weights(tensor(raw=None, more=data(4, bytes(4)))), "1 values"
    yield "values_many", weights(tensor(raw=None, more=data(4, bytes(12)))), "3 values"
    yield "values_cut", weights(tensor(raw=None, more=data(4, bytes(6)))), "cut off"
    yield "strings", weights(tensor(kind=8, raw=None)), "type string"
    yield "complex", weights(tensor(kind=14, raw=bytes(16))), "type complex64"
    yield "type_unknown", weights(tensor(kind=77)), "type number 77"
    yield "type_huge", weights(tensor(kind=2**63)), "which no tensor here can hold"
    yield "uint64_above", weights(tensor(dims=(1,), kind=13, raw=b"\xff" * 8)), "above 2"
    yield "other_file", weights(tensor(raw=None, more=number(14, 1))), "lies in another file"
    yield "sparse", model(graph(more=data(15, b""))), "sparse"
    yield "attribute_without_tensor", attribute(b"", 4), "has no value"
    yield "dimension_negative", model(graph(more=data(13, value("v", dims=(-7,))))), "a size of -7"
    deep = graph()
    for _ in range(60):
        deep = graph([node(attributes=[data(1, "a") + data(6, deep) + number(20, 5)])])
    yield "nesting", model(deep), "nest deeper"


def onnx_cases():
    yield from onnx_good()
    yield from onnx_bad()
