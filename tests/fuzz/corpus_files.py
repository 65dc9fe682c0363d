"""Good and hostile IDX, gzip and NPY files for make_corpus.py."""

import struct
import zlib


def idx(code=8, sizes=(2, 3), data=None, begin=b"\0\0", rank=None):
    body = b"".join(struct.pack(">I", n) for n in sizes)
    if data is None:
        data = bytes(range(6))
    return begin + bytes([code, len(sizes) if rank is None else rank]) + body + data


def idx_cases():
    most = 2**32 - 1
    yield "good_bytes", idx(), ""
    yield "good_i8", idx(9, (2,), b"\x80\x7f"), ""
    yield "good_i32", idx(12, (1,), struct.pack(">i", -2)), ""
    yield "good_f32", idx(13, (2,), struct.pack(">ff", 1.5, float("nan"))), ""
    yield "good_f64", idx(14, (1,), struct.pack(">d", -0.0)), ""
    yield "good_no_images", idx(8, (0, 28, 28), b""), ""
    yield "good_eight_dimensions", idx(8, (1,) * 8, b"\x07"), ""
    yield "empty_file", b"", "does not begin like"
    yield "three_bytes", b"\0\0\x08", "does not begin like"
    yield "magic_not_zero", idx(begin=b"\0\x01"), "does not begin like"
    yield "text_file", b"label,pixel0\n5,0\n", "does not begin like"
    yield "little_endian", struct.pack("<I", 0x803) + bytes(12), "does not begin like"
    yield "type_0", idx(0), "unknown element type"
    yield "type_short", idx(11, (1,), b"\0\1"), "unknown element type"
    yield "type_255", idx(255), "unknown element type"
    yield "rank_0", idx(8, (), b""), "0 dimensions"
    yield "rank_9", idx(8, (1,) * 9, b"\x07"), "9 dimensions"
    yield "rank_255", idx(rank=255), "255 dimensions"
    yield "header_cut", idx()[:9], "cut off in the header"
    yield "data_cut", idx()[:-1], "there are 5"
    yield "data_too_long", idx() + b"\0", "there are 7"
    yield "header_only", idx(data=b""), "there are 0"
    yield "size_2_to_32", idx(8, (most,), b"abc"), "there are 3"
    yield "product_wraps", idx(14, (most,) * 8, b""), "too many"
    yield "product_wraps_to_0", idx(8, (2**31, 2**31, 4), b""), "too many"
    yield "product_wraps_before_0", idx(8, (most, most, most, 0), b""), "too many"
    yield "product_wraps_after_0", idx(8, (0, most, most, most), b""), "too many"


def gz(data, level=9, begin=b"\x1f\x8b\x08\0\0\0\0\0\0\xff", crc=None, size=None):
    packer = zlib.compressobj(level, zlib.DEFLATED, -15)
    body = packer.compress(data) + packer.flush()
    crc = zlib.crc32(data) if crc is None else crc
    return begin + body + struct.pack("<II", crc, (len(data) if size is None else size) % 2**32)


def gzip_cases():
    plain = idx()
    good = gz(plain)
    bomb = idx(8, (4 << 20,), bytes(4 << 20))
    yield "good", good, ""
    yield "good_stored", gz(plain, level=0), ""
    yield "good_two_members", gz(plain[:7]) + gz(plain[7:]), ""
    yield "good_with_name", gz(plain, begin=b"\x1f\x8b\x08\x08\0\0\0\0\0\x03a.idx\0"), ""
    yield "empty_file", b"", "cut off"
    yield "one_byte", b"\x1f", "cut off"
    yield "header_only", good[:10], "cut off"
    yield "cut_in_data", good[:14], "cut off"
    yield "cut_in_checksum", good[:-3], "cut off"
    yield "checksum_wrong", gz(plain, crc=1), "incorrect data check"
    yield "length_wrong", gz(plain, size=3), "incorrect length check"
    yield "method_wrong", b"\x1f\x8b\x07" + good[3:], "damaged"
    yield "magic_wrong", b"\x1f\x8c" + good[2:], "damaged"
    yield "name_without_end", gz(b"", begin=b"\x1f\x8b\x08\x08\0\0\0\0\0\x03")[:10] + b"a" * 40, \
        "cut off"
    yield "block_type_3", good[:10] + b"\x07" + good[11:], "damaged"
    yield "rest_after_data", good + b"rest", "damaged"
    yield "second_member_cut", good + good[:12], "cut off"
    yield "packed_twice", gz(good), "does not begin like"
    yield "thousand_to_one", gz(bomb), "unpacks to more than"
    yield "no_content", gz(b""), "does not begin like"


def npy(header, data=b"", version=1, length=None, minor=0):
    if isinstance(header, str):
        header = header.encode()
    n = len(header) if length is None else length
    packed = struct.pack("<H" if version == 1 else "<I", n)
    return b"\x93NUMPY" + bytes([version, minor]) + packed + header + data


def header(descr="'<f4'", fortran="False", shape="(2, 3)"):
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n"


def npy_good():
    data = struct.pack("<6f", *range(6))
    padded = header()[:-1].ljust(117) + "\n"
    yield "good_padded", npy(padded, data), ""
    yield "good_unpadded", npy(header(), data), ""
    yield "good_fortran", npy(header(fortran="True"), data), ""
    yield "good_version_2", npy(header(), data, version=2), ""
    yield "good_version_3", npy(header(), data, version=3), ""
    yield "good_other_order", npy('{ "shape":(2,3) , "fortran_order" : False,"descr":"<f4"}',
                                  data), ""
    yield "good_rest_after_data", npy(header(), data + b"rest"), ""
    yield "good_big_endian", npy(header("'>f4'", shape="(1,)"), b"\x3f\xc0\0\0"), ""
    yield "good_0_d", npy(header("'<f8'", shape="()"), bytes(8)), ""
    yield "good_nothing", npy(header(shape="(0, 5)")), ""
    yield "good_bool_of_2", npy(header("'|b1'", shape="(2,)"), b"\x02\0"), ""
    yield "good_u2", npy(header("'<u2'", shape="(1,)"), b"\xff\xff"), ""
    yield "good_u4", npy(header("'>u4'", shape="(1,)"), b"\xff\xff\xff\xff"), ""


def npy_cases():
    data = struct.pack("<6f", *range(6))
    yield from npy_good()
    yield "empty_file", b"", "does not begin like"
    yield "magic_only", b"\x93NUMPY", "does not begin like"
    yield "magic_wrong", b"\x93NUMPX" + npy(header(), data)[6:], "does not begin like"
    yield "version_0", npy(header(), data, version=0), "version 0"
    yield "version_9", npy(header(), data, version=9), "version 9"
    yield "length_beyond_file", npy(header(), data, length=9999), "exceeds the file"
    yield "length_zero", npy("", data), "need '{'"
    yield "length_4_billion", npy(header(), data, version=2, length=2**32 - 1), "exceeds the file"
    yield "version_2_cut", npy(header(), version=2)[:11], "cut off in the header"
    yield "data_cut", npy(header(), data[:-1]), "is cut off"
    yield "objects", npy(header("'|O'", shape="(1,)"), b"\x80\x03."), "unsupported type '|O'"
    yield "text", npy(header("'<U2'", shape="(1,)"), bytes(8)), "unsupported type '<U2'"
    yield "complex", npy(header("'<c8'", shape="(1,)"), bytes(8)), "unsupported type '<c8'"
    yield "structured", npy(header("[('a', '<f4')]"), data), "structured types"
    yield "type_empty", npy(header("''"), data), "unsupported type ''"
    yield "type_of_order_only", npy(header("'<'"), data), "unsupported type '<'"
    yield "type_order_zero_byte", npy(header("'\0f4'"), data), "unsupported type"
    yield "key_unknown", npy("{'descr': '<f4', 'magic': 1}", data), "unknown header key"
    yield "key_twice", npy("{'descr':'<f4','descr':'<f4','fortran_order':False,'shape':()}",
                           data), "repeats descr"
    yield "key_missing", npy("{'descr': '<f4', 'shape': (1,)}", data), "lacks fortran_order"
    yield "no_keys", npy("{}", data), "lacks descr"
    yield "brace_open", npy(header()[:-3], data), "need a string"
    yield "string_open", npy("{'descr': '<f4", data), "does not end"
    yield "text_after_header", npy(header()[:-1] + "__import__('os')\n", data), "text after"
    yield "fortran_number", npy(header(fortran="1"), data), "True or False"
    yield "fortran_cut", npy("{'fortran_order': Tru", data), "True or False"
    yield "shape_list", npy(header(shape="[2, 3]"), data), "need '('"
    yield "shape_negative", npy(header(shape="(-2, 3)"), data), "need a size"
    yield "shape_fraction", npy(header(shape="(2.5,)"), data), "need ')'"
    yield "shape_word", npy(header(shape="(None,)"), data), "need a size"
    yield "shape_of_9", npy(header(shape="(1,1,1,1,1,1,1,1,1)"), data), "more than 8"
    yield "size_2_to_64", npy(header(shape="(18446744073709551616,)"), data), "too large"
    yield "product_wraps", npy(header(shape="(4294967296, 4294967296)")), "too large"
    yield "product_wraps_beside_0", npy(
        header(shape="(0, 9223372036854775807, 9223372036854775807)")), "too large"
    yield "zeros_instead_of_header", npy(bytes(64), data), "need '{'"
