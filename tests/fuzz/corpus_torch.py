"""Good and hostile files of torch.save for make_corpus.py."""

import struct

from corpus_zip import Zip, deflated

END = b"."
ORDERED = b"ccollections\nOrderedDict\n"
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"


def text(s):
    s = s.encode() if isinstance(s, str) else s
    return b"X" + struct.pack("<I", len(s)) + s


def number(n):
    return b"\x8a\x08" + struct.pack("<q", n)


def numbers(values):
    return b"(" + b"".join(number(v) for v in values) + b"t"


def storage(key="0", kind="FloatStorage", elements=4):
    return b"(" + text("storage") + b"ctorch\n" + kind.encode() + b"\n" + text(key) + \
        text("cpu") + number(elements) + b"tQ"


def tensor(sizes=(4,), strides=(1,), offset=0, **of):
    return REBUILD + b"(" + storage(**of) + number(offset) + numbers(sizes) + numbers(strides) + \
        b"\x89" + ORDERED + b")RtR"


def mapping(*pairs):
    return b"}(" + b"".join(text(k) + v for k, v in pairs) + b"u"


def file(body, data=(("0", bytes(range(16))),), folder="a/", begin=b"\x80\x02", end=END, more=()):
    z = Zip().add((folder + "data.pkl").encode(), begin + body + end)
    for key, content in data:
        z.add((folder + "data/" + key).encode(), content)
    for name, content in more:
        z.add(name.encode(), content)
    return z.end()


def one(**fields):
    return file(mapping(("w", tensor(**fields))))


def torch_good():
    yield "good_one", one(), ""
    yield "good_lone_tensor", file(tensor()), ""
    yield "good_nothing", file(b"}"), ""
    yield "good_strided", one(sizes=(2, 2), strides=(1, 2)), ""
    yield "good_repeated", one(sizes=(1000, 4), strides=(0, 1)), ""
    yield "good_scalar", one(sizes=(), strides=(), offset=3), ""
    yield "good_no_elements", one(sizes=(0, 5), strides=(5, 1)), ""
    yield "good_bool", one(kind="BoolStorage", elements=16), ""
    yield "good_parameter", file(b"ctorch._utils\n_rebuild_parameter\n(" + tensor() + b"\x88" +
                                 ORDERED + b")RtR"), ""
    yield "good_ordered", file(ORDERED + b")R(" + text("w") + tensor() + b"u}" + text("_metadata") +
                               b"}sb"), ""
    yield "good_memo", file(b"](" + tensor() + b"q\x00h\x00e"), ""
    yield "good_holds_no_tensor", file(b"](N\x88K\x05G" + bytes(8) + text("x") + b"e"), ""
    yield "good_byteorder", file(tensor(), more=(("a/byteorder", b"little"),)), ""
    yield "good_no_folder", file(tensor(), folder=""), ""


def torch_structure():
    yield "empty_file", b"", "not a zip archive"
    yield "cut", one()[:-1], "not a zip archive"
    yield "old_format", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.", "old format without zip"
    yield "no_pickle", Zip().add(b"a/x", b"x").end(), "needs one member data.pkl; got 0"
    yield "two_pickles", file(b"}", more=(("b/data.pkl", b"}."),)), "got 2"
    yield "member_twice", file(b"}", more=(("a/data/0", b"x"),)), "is there twice"
    yield "big_endian", file(b"}", more=(("a/byteorder", b"big"),)), "little-endian"
    yield "script", file(b"}", more=(("a/constants.pkl", b"x"),)), "TorchScript"
    bomb = bytes(70 << 20)
    yield ("pickle_of_70_mb", Zip().add(b"a/data.pkl", bomb, deflated(bomb)).end(), "unpacks to")
    many = b"\x80\x02(" + b"N" * (3 << 20) + b"t."
    yield ("three_million_values", Zip().add(b"a/data.pkl", many, deflated(many)).end(), "values")


def torch_pickle():
    yield "pickle_empty", file(b"", begin=b"", end=b""), "cut off"
    yield "no_end", file(b"}", end=b""), "cut off"
    yield "protocol_0", file(b"}", begin=b"\x80\x00"), "protocol 0"
    yield "protocol_9", file(b"}", begin=b"\x80\x09"), "protocol 9"
    yield "runs_system", file(b"cos\nsystem\n" + text("true") + b"\x85R"), "global os.system"
    yield "runs_eval", file(b"cbuiltins\neval\n(" + text("1") + b"tR"), "global builtins.eval"
    yield "stack_global", file(text("posix") + text("system") + b"\x93"), "global posix.system"
    yield ("storage_elsewhere", file(b"ctorch.x\nFloatStorage\n"), "global torch.x.FloatStorage")
    yield "global_cut", file(b"cos\nsystem", end=b""), "cut off in a name"
    yield "global_of_numbers", file(b"K\x01K\x02\x93"), "what is no text"
    yield "instance", file(b"(cos\nsystem\no"), "global os.system"
    yield "opcode_inst", file(b"(ios\nsystem\n"), "opcode 0x69"
    yield "opcode_newobj", file(ORDERED + b")\x81"), "opcode 0x81"
    yield "opcode_extension", file(b"\x82\x01"), "opcode 0x82"
    yield "opcode_text_int", file(b"I1\n"), "opcode 0x49"
    yield "empty_stack", file(b""), "where none is"
    yield "pops_too_much", file(b"00"), "where none is"
    yield "pops_below_mark", file(b"}(0"), "where none is"
    yield "group_without_begin", file(b"t"), "ends a group"
    yield "text_beyond_end", file(b"X\xff\xff\xff\xff"), "length beyond its end"
    yield "text_of_2_to_64", file(b"\x8d" + b"\xff" * 8), "length beyond its end"
    yield "number_of_255_bytes", file(b"\x8a\xff" + bytes(255)), "255 bytes"
    yield "memo_empty", file(b"h\x05"), "memo place 5"
    yield "memo_far", file(b"}r\xff\xff\xff\xff"), "memo place 4294967295"
    yield "append_to_dict", file(b"}Na"), "what is no list"
    yield "set_in_list", file(b"]NNs"), "what is no dictionary"
    yield "odd_items", file(b"}(Nu"), "what is no dictionary"
    yield "odd_dict", file(b"(Nd"), "key without a value"
    yield "key_none", file(b"}NNs"), "neither texts nor"
    yield "call_of_number", file(b"K\x01)R"), "no known function"
    yield "call_of_storage", file(b"ctorch\nFloatStorage\n)R"), "calls torch.FloatStorage"
    yield "ordered_of_items", file(ORDERED + b"(NtR"), "OrderedDict of arguments"
    yield "parameter_of_none", file(b"ctorch._utils\n_rebuild_parameter\n(NtR"), "without a tensor"
    yield "build_on_number", file(b"K\x01}b"), "what is no dictionary"
    yield "holds_itself", file(b"]q\x00h\x00a"), "nested more than"
    yield "dict_holds_itself", file(b"}q\x00" + text("a") + b"h\x00s"), "nested more than"
    yield "nested_100000", file(b")" + b"\x85" * 100000), "nested more than"
    laughs = b")q\x00" + b"".join(b"0(" + (b"h%c" % i) * 10 + b"tq%c" % (i + 1)
                                  for i in range(12)) + b"h\x0c"
    yield "laughs", file(laughs), "values"
    yield "name_twice", file(mapping(("w", tensor()), ("w", tensor()))), "w is there twice"
    yield "long_name", file(mapping(("w" * 2000, tensor()))), "name of 2000 bytes"


def torch_tensors():
    most = 2**63 - 1
    yield "storage_missing", one(key="9"), "no member data/9"
    yield "storage_climbs", one(key="../../x"), "no member data/../../x"
    yield "storage_too_short", one(elements=5), "got 5 elements of 4 bytes"
    yield "storage_negative", one(elements=-1), "got -1 elements"
    yield "storage_huge", one(elements=most), "elements of 4 bytes"
    yield "storage_short", one(kind="ShortStorage"), "elements of torch.ShortStorage"
    yield "storage_complex", one(kind="ComplexFloatStorage"), "torch.ComplexFloatStorage"
    yield "storage_quantised", one(kind="QInt8Storage"), "torch.QInt8Storage"
    yield "id_text", file(text("0") + b"Q"), "is not described"
    yield "id_module", file(b"(" + text("module") + b"NNNNtQ"), "is not described"
    yield "offset_beyond", one(offset=1), "in a storage of 4 elements"
    yield "offset_negative", one(offset=-1), "without storage, offset"
    yield "offset_largest", one(offset=most), "in a storage of 4 elements"
    yield "offset_beyond_empty", one(sizes=(0,), offset=5), "in a storage of 4 elements"
    yield "size_beyond", one(sizes=(5,)), "in a storage of 4 elements"
    yield "size_negative", one(sizes=(-1,)), "size is not of whole numbers"
    yield "size_wraps", one(sizes=(2**32, 2**32), strides=(0, 0)), "in a storage of 4 elements"
    yield "stride_negative", one(strides=(-1,)), "stride is not of whole numbers"
    yield "stride_wraps", one(sizes=(3,), strides=(most,)), "in a storage of 4 elements"
    yield "stride_count", one(strides=(1, 1)), "other strides than sizes"
    yield "nine_dimensions", one(sizes=(1,) * 9, strides=(1,) * 9), "9 dimensions"
    yield "tensor_of_nothing", file(REBUILD + b")R"), "without storage, offset"
    yield "size_no_tuple", file(REBUILD + b"(" + storage() + number(0) + b"NNtR"), "no tuple"


def torch_cases():
    yield from torch_good()
    yield from torch_structure()
    yield from torch_pickle()
    yield from torch_tensors()
