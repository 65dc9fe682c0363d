"""Good and hostile NPZ files for make_corpus.py, written member by member."""

import struct
import zlib

from corpus_files import header, npy

FULL = 0xFFFFFFFF


def deflated(data):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


class Zip:
    """An archive whose every field can be told to lie."""

    def __init__(self):
        self.body, self.directory, self.count = b"", b"", 0

    def add(self, name, data, packed=None, **lies):
        """`lies`: method, flags, crc, local_size, size, packed_size, local_name, zip64, stream."""
        name = name.encode() if isinstance(name, str) else name
        method = lies.get("method", 0 if packed is None else 8)
        packed = data if packed is None else packed
        flags = lies.get("flags", 8 if lies.get("stream") else 0)
        crc = lies.get("crc", zlib.crc32(data))
        size = lies.get("size", len(data))
        packed_size = lies.get("packed_size", len(packed))
        local = (crc, packed_size, size)
        extra = b""
        if lies.get("stream"):
            local = (0, 0, 0)
        if lies.get("zip64"):
            local = (crc, FULL, FULL)
            extra = struct.pack("<HHQQ", 1, 16, size, packed_size)
        local_name = lies.get("local_name", name)
        start = len(self.body)
        self.body += struct.pack("<IHHHHHIIIHH", 0x04034B50, 45, flags, method, 0, 0x21, *local,
                                 len(local_name), len(extra)) + local_name + extra + packed
        if lies.get("stream"):
            self.body += struct.pack("<IIII", 0x08074B50, crc, packed_size, size)
        self.directory += struct.pack(
            "<IHHHHHHIIIHHHHHII", 0x02014B50, 45, 45, flags, method, 0, 0x21, crc, packed_size,
            size, len(name), 0, 0, 0, 0, 0, lies.get("offset", start)) + name
        self.count += 1
        return self

    def end(self, count=None, size=None, offset=None, comment=b""):
        count = self.count if count is None else count
        size = len(self.directory) if size is None else size
        offset = len(self.body) if offset is None else offset
        return self.body + self.directory + struct.pack(
            "<IHHHHIIH", 0x06054B50, 0, 0, count, count, size, offset, len(comment)) + comment


def array(values=(1, 2)):
    return npy(header(shape=f"({len(values)},)"), struct.pack(f"<{len(values)}f", *values))


def one(data=None, packed=None, name="a.npy", **lies):
    return Zip().add(name, array() if data is None else data, packed, **lies)


def npz_good():
    a, b = array(), array((3,))
    yield "good_nothing", Zip().end(), ""
    yield "good_stored", Zip().add("a.npy", a).add("b.npy", b).end(), ""
    yield "good_deflated", Zip().add("a.npy", a, deflated(a)).add("b.npy", b, deflated(b)).end(), ""
    yield "good_zip64", Zip().add("a.npy", a, zip64=1).add("b.npy", b, zip64=1).end(), ""
    yield "good_streamed", (Zip().add("a.npy", a, deflated(a), stream=1)
                            .add("b.npy", b, deflated(b), stream=1).end()), ""
    yield "good_name_without_ending", Zip().add("a", a).add("b.npy", b).end(), ""
    yield "good_comment", one().end(comment=b"made by hand"), ""
    yield "good_text_before", b"#!/bin/sh\n" + one().end(), ""


def npz_cases():
    a = array()
    packed = deflated(a)
    good = one().end()
    yield from npz_good()
    yield "empty_file", b"", "not a zip archive"
    yield "end_cut", good[:-1], "not a zip archive"
    yield "local_header_only", one().body, "not a zip archive"
    yield "array_instead", a, "not a zip archive"
    yield "name_twice", Zip().add("a.npy", a).add("a.npy", a).end(), "is there twice"
    yield "name_twice_without_ending", Zip().add("a", a).add("a.npy", a).end(), "is there twice"
    yield "crc_wrong", one(crc=1).end(), "member a.npy: its CRC is wrong"
    yield "crc_wrong_deflated", one(packed=packed, crc=1).end(), "member a.npy: its CRC is wrong"
    yield "encrypted", one(flags=1).end(), "is encrypted"
    yield "method_unknown", one(method=12).end(), "compression method 12"
    yield "packed_damaged", one(packed=b"\x07" + packed[1:]).end(), "packed data are damaged"
    yield "packed_cut", one(packed=packed[:10]).end(), "member a.npy"
    yield "size_too_small", one(packed=packed, size=20).end(), "member a.npy"
    yield "size_too_large", one(packed=packed, size=len(a) + 9).end(), "member a.npy"
    yield "size_4_billion", one(packed=packed, size=FULL - 1).end(), "claims 4294967294 bytes"
    yield "stored_sizes_differ", one(size=5).end(), "claims 5 bytes"
    yield "packed_size_beyond_file", one(packed=packed, packed_size=99999).end(), "99999 packed"
    yield "offset_beyond_file", one(offset=99999).end(), "local header"
    yield "offset_into_data", one(offset=7).end(), "local header"
    yield "directory_beyond_file", one().end(offset=99999), "not a zip archive"
    yield "directory_of_nothing", one().end(size=0), "directory is damaged"
    yield "more_members_than_there_are", one().end(count=9), "central directory is damaged"
    yield "fewer_members_than_there_are", Zip().add("a.npy", a).add("b.npy", a).end(count=1), ""
    yield "name_of_zero_bytes", one(name=b"").end(), ""
    yield "name_climbs", one(name="../../a.npy").end(), ""
    yield "local_name_differs", one(local_name=b"bb.npy").end(), "local header"
    yield "member_no_array", one(data=b"text").end(), "member a.npy: does not begin like"
    yield "member_cut_array", one(data=a[:-1]).end(), "member a.npy: is cut off"
    yield "member_objects", one(data=npy(header("'|O'"), b"\x80\x03.")).end(), "type '|O'"
    zeros = npy(header("'|u1'", shape="(3000000,)"), bytes(3_000_000))
    yield "thousand_to_one", one(data=zeros, packed=deflated(zeros)).end(), ""
    yield "many_members", Zip().end(count=65535), "central directory"


def named_array(shape, values, descr="<f4"):
    """A .npy member; values as bytes for u1, else numbers."""
    code = {"<f4": "f", "<i8": "q", "|u1": "B"}[descr]
    return npy(header(descr=f"'{descr}'", shape="(" + "".join(f"{n}," for n in shape) + ")"),
               struct.pack(f"<{len(values)}{code}", *values))


def named_set(**arrays):
    archive = Zip()
    for name, content in arrays.items():
        archive.add(name + ".npy", content)
    return archive.end()


def named_set_cases():
    x, y = named_array((5, 2), range(10)), named_array((5,), (0, 1, 2, 1, 0), "<i8")
    pixels = named_array((2, 2, 3, 3), range(36), "|u1")
    pair, lone = named_array((2,), (3, -1), "<i8"), named_array((), (1,))
    yield "good", named_set(x=x, y=y), ""
    yield "good_splits", named_set(x_train=x, y_train=y, X_test=x, Y_test=y), ""
    yield "good_pixels", named_set(train_images=pixels, train_labels=pair), ""
    yield "good_one_hot", named_set(inputs=named_array((2,), (5, 6)), targets=named_array(
        (2, 3), (0, 1, 0, 1, 0, 0), "<i8")), ""
    yield "good_values", named_set(data=pixels, gt=named_array((2,), (0.5, 1.5))), ""
    yield "good_other_name", named_set(features=x, raw_data=y), ""
    yield "good_no_examples", named_set(x=named_array((0, 3), ()), y=named_array((0,), ())), ""
    yield "nothing", named_set(), "it holds no arrays"
    yield "other_names", named_set(a=x, b=y), "neither inputs nor targets; it holds a [5,2], b [5]"
    yield "no_targets", named_set(x=x), "inputs without targets"
    yield "no_inputs", named_set(y=y), "targets without inputs"
    yield "no_targets_of_split", named_set(x_train=x, y=y), "inputs without targets"
    yield "two_others", named_set(x=x, a=y, b=y), "inputs without targets"
    yield "counts_differ", named_set(x=x, y=pair), "inputs [5,2] for 2 targets"
    yield "input_is_number", named_set(x=lone, y=y), "the inputs are one number"
    yield "target_is_number", named_set(x=x, y=lone), "the targets are one number"
    yield "targets_of_3_dimensions", named_set(x=pixels, y=named_array((2, 1, 1), (0, 1))), (
        "targets have sizes [2,1,1]")
    yield "widths_differ", named_set(
        x_train=x, y_train=named_array((5, 2), range(10)), x_test=x,
        y_test=named_array((5, 3), range(15))), "targets of the splits have other sizes"
    yield "one_split_of_vectors", named_set(
        x_train=x, y_train=y, x_test=x, y_test=named_array((5, 3), range(15))), "other sizes"
    yield "views_of_other_targets", named_set(
        x=x, **{"y{1}": y, "y{2}": named_array((5,), range(5))}), "targets of several views differ"
    yield "cut", named_set(x=x, y=y)[:-30], "zip"
