"""Good and hostile MATLAB files for make_corpus.py."""

import base64
import struct
import zlib


def stored(text):
    return zlib.decompress(base64.b64decode(text))


# Version 7.3. By libmatio: X = [1 2 3; 4 5 6], y = uint8([1; 2]), a cell, a struct with a text.
HDF5_CELLS = stored("""
eNrtWc9vEkEUnlkWXFmrUFqh9eAmeDAmGrUYe7KgoDUptqkcGi+FwqJEpIYfiXrRY/Xg3+CxR4+96dGjf0qvnuruzptlZwos
BawkfV9C3s7Me7OzM9+bN2/IZwprmYfG/VtLRj5TuFmt1U1inBKI8jRPEP8Vn1ezj2fCi2GnoGlEJRHWoDBxBDDuiWVuXwRJ
Qe6B3Fd4PXXaElAfhf5lvcJmLmdrH0ng77mtMhnBJTuTWM1lNmy5xfkA8pci6vH29yCTTbPaShJShnJL4ut1n/dSco7pUl5m
FlRhFQEiuEuPcsIxjRorRHNq0iSlk9QRKAatWrtdUViHGnhKgBq6+KUMs9CLrWzciL6+AO2UzFgtGsk7+/l2uV5qOZ8as34h
z/dWdjs71hZ/rN9h8fzZepZao+b+vBcS5/M7lH+zYcJorbEGBvdr8HU+P1iPr9dWWNp3LjP5KSzuE++C08lnP15RiUf0GK8i
Tl3EbdN8+LShiz2MzqegZzydWqO97DwtjzkfveOEzCffODGHcQLjRDcOcD4daqIe3/3uSP6V/kf+3M+PqevPzG/j4Mn9/fiD
3ovho/ix6nl/2azXx5sBeT5UwZ8jMN59qDjwWa9vYbG/EshG6Y05ifU6GQ5X4CvS4mvnQGogE2lqL6yt/YPVXIOWFMgHILNp
IwYRap7JP9YuViI77kkFgUAgEAjEtOZp/uc6nv9fJSpkunGNxD8Sv/x/Uxcz6Mnk/61a4+X4+b/Szetjg/XdPHweuTQKr/rJ
0e+VXujijct03Cv55fVvFzGvP8tw/zeQ7vlOvP+1m51y27Yrgt1Fq+cEt6vWzHrFNlwArsXAltLefun4S7L7rHrKChn+nq+f
dO/5NOLGj8H+/QX8Wx3bv733fLVGe+mu8zTePZ8cP4oLw8WPgyvoA73ih+bzv0SXR3145XI54sOrr8Cr0GTvnV6VmsyP02A3
az27dhbttitmebdicj5IfiCfuxAIBAKBmASePFpfo56DiHw+K0nxh5+6+P8UHD8v4VwiEAgEAoFAIBAIBAIxrfgLwkPg5A==""")
# By h5py, with the attributes that MATLAB writes: X as above, Z int16 [2,3,4] packed, a logical.
HDF5_PACKED = stored("""
eNrzdQzxcXRSMNczVvB1DNFNy8xJ1VEIyEksScsvyrVSyMvPS1WgNmCAASZPX4ZRMKCg08PFjZdLigvM4eBgYGEQgMYNhPoP
BQ5yqHyY/gQozQilO6D0CiaYOCNYTgIqLgg1H11dSJCrK0j1fzQAs8eABUJLjEbZiAQero4BIDoCyocVIieYUNXB5KOgdFpO
Yjpy+rQg0V5GBjaIXkYYXwNCM0EEmBlQsgsWvgRYq6CCPQMHWMSBwYSbweQ/VCErUBQkz8QEMZADmsKZGaHKGQxQ3MMD5TMy
8AIVcDD4gsvv+OScxOJikLgwELMh+TclvzQpJxViLzVAsJ+/CyPQVxyweGDGrx5amjBUsOJXB8vXHWwjIz0zMrCjpStIymRk
hgiw4EhPLDjTmQDYKAEOmJgAavpihtjEDcw5IAYj3F4OcAmdkgrMKSWpcPM5oDmMmQleI7BArWVCspao9MiKlB4z80oMzaA2
4A8P1HzGhFbPoPPh/oeLcRDIXzEcqCYR7x92JHtz8tMzkxNzgPocoPqEgGy4PqB341NSk/NTUmH5gQMWhwoo7mcc0NT4wR7q
OlghAaVFoDQHlJZwqIhjPdjK2AB0/IZIiQZGpf/1r44lmMzUbbqaVt4x6U3JTtuuV1drdskLaTCKMjKMglEwCkbBKBgFo2Aw
AlC/mxFLv1uHSP0GqM04nO1TptGgHgWjYBSMglEwCkbBKBgFo2DIAwDwtY5e""")


def element(kind, data, order="<"):
    return struct.pack(order + "II", kind, len(data)) + data + bytes(-len(data) % 8)


def array(name, sizes, data, cls=6, kind=9, flags=0, order="<", parts=None):
    """A variable of version 5; `parts` stands for the data of cells, structs and sparse arrays."""
    content = element(6, struct.pack(order + "II", cls | flags, 0), order)
    content += element(5, struct.pack(f"{order}{len(sizes)}i", *sizes), order)
    content += element(1, name.encode(), order)
    content += element(kind, data, order) if parts is None else parts
    return element(14, content, order)


def doubles(*values, order="<"):
    return struct.pack(f"{order}{len(values)}d", *values)


def ints(*values):
    return struct.pack(f"<{len(values)}i", *values)


def packed(variable):
    """A compressed variable; zlib's stored block, so that every zlib gives the same bytes."""
    content = b"\x78\x01\x01" + struct.pack("<HH", len(variable), len(variable) ^ 0xFFFF) + variable
    content += struct.pack(">I", zlib.adler32(variable))
    return struct.pack("<II", 15, len(content)) + content


def mat5(*variables, order="<", version=0x0100):
    mark = struct.pack(order + "HH", version, 0x4D49)
    return b"MATLAB 5.0 MAT-file, made for tests".ljust(116) + bytes(8) + mark + b"".join(variables)


def old(name, rows, cols, data, kind=0, parts=0, order="<"):
    """A variable of version 4."""
    name = name.encode() + b"\0"
    return struct.pack(order + "5I", kind, rows, cols, parts, len(name)) + name + data


X = array("X", (2, 3), doubles(1, 4, 2, 5, 3, 6))
Y = array("y", (2, 1), b"\1\2", cls=9, kind=2)


def matlab_good():
    yield "good", mat5(X, Y), ""
    yield "good_packed", mat5(packed(X), packed(Y)), ""
    yield "good_nothing", mat5(), ""
    yield "good_small_elements", mat5(array("a", (1, 1), b"", parts=struct.pack(
        "<HHi", 5, 4, -3), cls=12)), ""
    yield "good_big_endian", mat5(array("X", (1, 2), doubles(1.5, -2, order=">"), order=">"),
                                  order=">"), ""
    kinds = {7: 7, 8: 1, 9: 2, 10: 3, 11: 4, 12: 5, 13: 6, 14: 12, 15: 13}
    widths = {7: 4, 1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 12: 8, 13: 8}
    yield "good_every_class", mat5(*[
        array(f"c{c}", (1, 1), (-c if k in (1, 3, 5, 12) else c).to_bytes(
            widths[k], "little", signed=k in (1, 3, 5, 12)), cls=c, kind=k)
        for c, k in kinds.items()]), ""
    yield "good_doubles_as_bytes", mat5(array("a", (1, 3), b"\1\2\3", kind=2)), ""
    yield "good_logical", mat5(array("a", (1, 2), b"\0\1", cls=9, kind=2, flags=0x200)), ""
    yield "good_three_dimensions", mat5(array("a", (1, 2, 2), doubles(1, 2, 3, 4))), ""
    yield "good_empty_array", mat5(array("a", (0, 3), b"")), ""
    cell = array("", (1, 2), doubles(1, 2)) + array("", (1, 1), b"\7", cls=9, kind=2)
    yield "good_cell", mat5(array("c", (1, 2), b"", cls=1, parts=cell)), ""
    names = element(1, b"a".ljust(8, b"\0") + b"bc".ljust(8, b"\0"))
    fields = struct.pack("<HHi", 5, 4, 8) + names + array("", (1, 1), doubles(5)) + array(
        "", (1, 2), b"h\0i\0", cls=4, kind=4)
    yield "good_struct", mat5(array("s", (1, 1), b"", cls=2, parts=fields)), ""
    sparse = element(5, ints(1, 0)) + element(5, ints(0, 1, 2)) + element(9, doubles(7, 8))
    yield "good_sparse", mat5(array("p", (2, 2), b"", cls=5, parts=sparse, flags=0)), ""
    yield "good_complex", mat5(array("z", (1, 1), b"", flags=0x800, parts=element(
        9, doubles(1)) + element(9, doubles(2))), X), ""
    yield "good_version_4", old("x", 2, 2, doubles(1, 2, 3, 4)) + old("y", 2, 1, b"\1\2", 50), ""
    yield "good_version_4_big_endian", old("x", 1, 1, doubles(9, order=">"), 1000, order=">"), ""
    yield "good_version_7_3", HDF5_CELLS, ""
    yield "good_version_7_3_packed", HDF5_PACKED, ""


def matlab_cases():
    yield from matlab_good()
    good = mat5(X, Y)
    yield "empty_file", b"", "is no MATLAB file: 0 bytes"
    yield "text", b"x,y\n1,2\n" * 40, "is no MATLAB file"
    yield "header_cut", good[:100], "is no MATLAB file"
    yield "version_3_0", mat5(X, version=0x0300), "is of version 3.0"
    yield "cut_in_tag", good[:132], "is cut off in variable 1 at byte 128"
    yield "cut_in_data", good[:150], "is cut off in variable 1 at byte 128"
    yield "cut_in_second", good[:-1], "is cut off in variable 2"
    yield "rest_behind", good + b"abc", "is cut off in variable 3"
    yield "length_4_billion", mat5(struct.pack("<II", 14, 0xFFFFFFFF) + bytes(64)), "is cut off"
    yield "kind_unknown", mat5(element(77, bytes(16))), "has the unknown type 77"
    yield "no_content", mat5(element(14, b"")), "is damaged"
    yield "good_zeros", mat5(element(14, bytes(64))), ""
    yield "data_short", mat5(array("X", (2, 3), doubles(1, 2))), "16 bytes of data"
    yield "data_missing", mat5(array("X", (2, 3), b"", parts=b"")), "is damaged"
    yield "data_long", mat5(array("X", (1, 1), doubles(1, 2))), "16 bytes of data"
    yield "data_of_unknown_kind", mat5(array("X", (1, 1), doubles(1), kind=8)), "is damaged"
    yield "size_negative", mat5(array("X", (-2, 3), doubles(1, 2))), "is damaged"
    yield "sizes_huge", mat5(array("X", (1 << 30, 1 << 30), doubles(1))), "is damaged"
    yield "sizes_of_2_to_31", mat5(array("X", (2**31 - 1,) * 4, doubles(1))), "is damaged"
    yield "good_class_99", mat5(array("X", (1, 1), doubles(1), cls=99)), ""
    yield "packed_damaged", mat5(element(15, b"\x78\x9c" + bytes(30))), "is damaged"
    yield "packed_cut", mat5(struct.pack("<II", 15, 40) + packed(X)[8:48]), "is damaged"
    bad_cell = element(14, b"") * 2
    yield "good_cell_of_nothing", mat5(array("c", (1, 2), b"", cls=1, parts=bad_cell)), ""
    yield "cell_short", mat5(array("c", (1, 9), b"", cls=1, parts=array("", (1, 1), doubles(1)))
                             ), "is damaged"
    yield "cell_huge", mat5(array("c", (1 << 15, 1 << 15), b"", cls=1, parts=b"")), "is damaged"
    deep = array("", (1, 1), doubles(1))
    for _ in range(60):
        deep = array("", (1, 1), b"", cls=1, parts=deep)
    yield "cells_in_cells", mat5(array("c", (1, 1), b"", cls=1, parts=deep)), "lies too deep"
    names = element(1, b"a".ljust(8, b"\0"))
    yield "struct_names_0", mat5(array("s", (1, 1), b"", cls=2, parts=struct.pack(
        "<HHi", 5, 4, 0) + names)), "is damaged"
    yield "good_no_struct_names", mat5(array("s", (1, 1), b"", cls=2, parts=struct.pack(
        "<HHi", 5, 4, 0x7FFFFFFF) + names)), ""
    yield "struct_short", mat5(array("s", (1, 3), b"", cls=2, parts=struct.pack(
        "<HHi", 5, 4, 8) + names)), "is damaged"
    far = element(5, ints(1, 9)) + element(5, ints(0, 1, 2)) + element(9, doubles(7, 8))
    yield "sparse_row_9", mat5(array("p", (2, 2), b"", cls=5, parts=far)), "out of range"
    starts = element(5, ints(1, 0)) + element(5, ints(0, 1, 99)) + element(9, doubles(7, 8))
    yield "sparse_start_99", mat5(array("p", (2, 2), b"", cls=5, parts=starts)), "out of range"
    few = element(5, ints(1, 0)) + element(5, ints(0, 2)) + element(9, doubles(7, 8))
    yield "sparse_starts_few", mat5(array("p", (2, 2), b"", cls=5, parts=few)), "no sound sparse"
    yield "old_kind_9000", old("x", 1, 1, doubles(1), 9000), "is no MATLAB file"
    yield "old_cut", old("x", 2, 2, doubles(1, 2, 3)), "is cut off in variable 1"
    yield "old_cut_in_header", old("x", 1, 1, doubles(1)) + bytes(7), "is cut off in variable 2"
    yield "old_sizes_wrap", old("x", 2**32 - 1, 2**32 - 1, doubles(1)), "is cut off"
    yield "old_name_0", struct.pack("<5I", 0, 1, 1, 0, 0) + doubles(1), "no sound header"
    yield "hdf5_missing", mat5(version=0x0200) + bytes(500), "holds no HDF5"
    yield "hdf5_cut", HDF5_CELLS[:5000], "is damaged"
    yield "hdf5_zeros", HDF5_CELLS[:700] + bytes(3000) + HDF5_CELLS[3700:], "is damaged"
    yield "hdf5_ones", HDF5_PACKED[:620] + b"\xff" * 600 + HDF5_PACKED[1220:], "is damaged"
