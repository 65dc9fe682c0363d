"""Good and hostile files of sparse multi-label samples for make_corpus.py."""

import struct

MASK = 0xFFFFFFFF


def sparse_cases():
    yield "good", b"3 4 5\n4,1 0:0.5 3:-2\n 2:1e-3\n0\n", ""
    yield "good_no_samples", b"0 4 5\n", ""
    yield "good_line_ends", b"1 4 5\r\n1,2 0:1 3:2\r\n", ""
    yield "good_not_ascending", b"1 4 5\n3,0 3:1 1:2 0:7\n", ""
    yield "good_without_last_line_end", b"1 4 5\n3 0:1", ""
    yield "empty_file", b"", "is empty"
    yield "blank_header", b"\n", ":1: the first line needs three counts"
    yield "two_counts", b"1 4\n0 0:1\n", ":1: the first line needs three counts"
    yield "four_counts", b"1 4 5 6\n0 0:1\n", "more than three counts"
    yield "count_negative", b"-1 4 5\n", "three counts"
    yield "count_huge", b"99999999999999999999 4 5\n", "three counts"
    yield "count_above_2_to_31", b"4294967296 4 5\n", "three counts"
    yield "too_many_features", b"1 2000000000 5\n0 0:1\n", ":1: 2000000000 features"
    yield "too_many_labels", b"1 5 2000000000\n0 0:1\n", "2000000000 labels; need at most"
    yield "too_few_lines", b"3 4 5\n0 0:1\n", "ends after 1 samples, the header gives 3"
    yield "too_many_lines", b"1 4 5\n0 0:1\n0 0:1\n", ":3: more lines than the 1 samples"
    yield "label_too_large", b"1 4 5\n5 0:1\n", ":2: label 5 is out of range"
    yield "label_negative", b"1 4 5\n-1 0:1\n", "label -1 is out of range"
    yield "label_word", b"1 4 5\nx 0:1\n", 'label "x" is not a whole number'
    yield "label_twice", b"1 4 5\n1,2,1 0:1\n", "label 1 is there twice"
    yield "label_missing_between", b"1 4 5\n1,,2 0:1\n", "is not a whole number"
    yield "feature_too_large", b"1 4 5\n1 4:1\n", ":2: feature 4 is out of range"
    yield "feature_twice", b"1 4 5\n1 2:1 2:3\n", "feature 2 is there twice"
    yield "value_nan", b"1 4 5\n1 2:nan\n", "feature 2 needs a finite value"
    yield "value_inf", b"1 4 5\n1 2:-inf\n", "feature 2 needs a finite value"
    yield "value_too_large", b"1 4 5\n1 2:1e99\n", "finite value"
    yield "value_missing", b"1 4 5\n1 2:\n", "finite value"
    yield "colon_missing", b"1 4 5\n1 2\n", "finite value"
    yield "blank_of_no_labels_lost", b"1 4 5\n2:1 3:1\n", "begins with a feature"
    yield "zero_bytes", b"1 4 5\n1 2:1\0\n", "finite value"
    yield "long_token", b"1 4 5\n" + b"9" * 5000 + b" 2:1\n", "is not a whole number"


def packages_cases():
    head = b"Package: a\nVersion: 1\n"
    yield "good", (head + b"Source: s (1.2)\nDepends: libc6 (>= 2.3), x | y, p:any\n"
                   b"Pre-Depends: dpkg\nDescription: what it is\n more of it\n"
                   b"Tag: a::b, c::{d,e},\n f::g\n\nPackage: b\n"), ""
    yield "good_blank_lines", b"\n\n" + head + b"\n\n\n" + b"Package: b\n\n", ""
    yield "good_empty", b"", ""
    yield "good_line_ends", b"Package: a\r\nDepends: b\r\n\r\nPackage: b\r\n", ""
    yield "good_empty_values", b"Package: a\nDepends:\nTag: ,,{,}\n", ""
    yield "no_colon", head + b"Depends\n", ':3: need "Field: value"; got "Depends"'
    yield "colon_first", b": a\n", 'need "Field: value"'
    yield "continues_nothing", b" a\n", ":1: continues no field"
    yield "continues_nothing_later", head + b"\n\tb\n", ":4: continues no field"
    yield "no_package", b"Source: a\n\n", "has no Package"
    yield "no_package_at_end", head + b"\nVersion: 1\n", "has no Package"
    yield "package_empty", b"Package: \n", "has no Package"
    yield "package_twice", head + b"Package: b\n", ":3: the field is there twice: Package"
    yield "depends_twice", head + b"Depends: b\nDepends: c\n", "twice: Depends"
    yield "other_field_twice", head + b"X: b\nX: c\n", "twice: X"
    yield "html", b"<!DOCTYPE html>\n<html>\n", 'need "Field: value"'
    yield "random_bytes", bytes((i * 167 + 13) % 255 + 1 for i in range(256)), "need"
    yield "long_line", b"x" * 20000, 'need "Field: value"'


def synset(offset, word, pointers=(), gloss="a thing", words=None):
    text = f"{offset:08} 03 n {1 if words is None else words:02x} {word} 0 {len(pointers):03} "
    for symbol, to in pointers:
        text += f"{symbol} {to:08} n 0000 "
    return f"{text}| {gloss}  \n".encode()


def wordnet_cases():
    root = synset(1740, "entity")
    child = synset(1930, "thing", [("@", 1740)])
    yield "good", root + child, ""
    yield "good_licence", b"  1 This software\n  2 is free\n" + root + child, ""
    yield "good_two_words", root + (
        b"00000009 03 n 02 big_dog 0 dog 1 001 @ 00001740 n 0000 | x\n"), ""
    yield "good_cycle", synset(1, "a", [("@", 2)]) + synset(2, "b", [("@", 1)]), ""
    yield "good_domains", root + synset(5, "x", [("@i", 1740), (";c", 1740), ("~", 99)]), ""
    yield "good_itself", synset(1, "a", [("@", 1)]), ""
    yield "good_other_part_of_speech", root + (
        b"00000009 03 n 01 dog 0 001 ;c 00009999 v 0000 | x\n"), ""
    yield "pointer_to_nothing", root + synset(5, "x", [("@", 77)]), ":2: points to 00000077"
    yield "offset_twice", root + root, ":2: the offset 00001740 is there twice"
    yield "offset_word", b"abc 03 n 01 a 0 000 | x\n", 'need an offset; got "abc"'
    yield "offset_only", b"00001740\n", "need a lexicographer file"
    yield "verb", b"00001740 03 v 01 a 0 000 | x\n", 'need the type n; got "v"'
    yield "no_words", synset(1740, "a", words=0), "a synset without words"
    yield "words_not_hex", b"00001740 03 n zz a 0 000 | x\n", "need a number of words"
    yield "more_words_than_there", b"00001740 03 n ff a 0 000 | x\n", ":1: need "
    yield "more_pointers_than_there", b"00001740 03 n 01 a 0 999 | x\n", ":1: need "
    yield "pointers_negative", b"00001740 03 n 01 a 0 -1 | x\n", "need a number of pointers"
    yield "pointer_offset_word", b"00001740 03 n 01 a 0 001 @ x n 0000 | x\n", "offset of a pointer"
    yield "bar_missing", b"00001740 03 n 01 a 0 000 x\n", 'need "|"'
    yield "cut_off", root[:25], ":1: need "
    yield "html", b"<html>\n", "need an offset"


def json_cases():
    yield "good", b'{"uid":"A","title":"t","target_ind":[1,2],"target_rel":[1.0,0.5]}', ""
    yield "good_empty", b"{}", ""
    yield "good_other_values", b'{"a":null,"b":true,"c":{"d":[1]},"e":["x",1]}', ""
    yield "good_escapes", b'{"a":"\\u00e9\\n\\"","b":-1e3}', ""
    yield "good_deep", b'{"a":[[[[[[[1]]]]]]]}', ""
    yield "empty_file", b"", "is not JSON"
    yield "list", b"[1]", "is not an object"
    yield "number", b"1", "is not an object"
    yield "text", b'"a"', "is not an object"
    yield "null", b"null", "is not an object"
    yield "open", b'{"a":1', "is not JSON"
    yield "two_objects", b"{}{}", "is not JSON"
    yield "name_twice", b'{"a":1,"a":2}', 'has the name "a" twice'
    yield "too_deep_lists", b'{"a":' + b"[" * 3000, "is nested too deeply"
    yield "too_deep_objects", b'{"a":' * 3000, "is nested too deeply"
    yield "nan", b'{"a":nan}', "is not JSON"
    yield "number_of_400_digits", b'{"a":' + b"9" * 400 + b"}", "is not JSON"
    yield "not_utf8", b'{"a":"\xff"}', "is not JSON"
    yield "lone_surrogate", b'{"a":"\\ud800"}', "is not JSON"
    yield "zero_byte", b'{"a\0":1}', "is not JSON"


def rotate(value, bits):
    return (value << bits | value >> (32 - bits)) & MASK


def xxh32(data):
    """XXH32 with seed 0."""
    k1, k2, k3, k4, k5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
    hash_, at = k5, 0
    if len(data) >= 16:
        lanes = [(k1 + k2) & MASK, k2, 0, -k1 & MASK]
        for at in range(0, len(data) - 15, 16):
            words = struct.unpack_from("<4I", data, at)
            lanes = [rotate((lane + word * k2) & MASK, 13) * k1 & MASK
                     for lane, word in zip(lanes, words)]
        at += 16
        hash_ = sum(rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18)))
    hash_ = (hash_ + len(data)) & MASK
    for at in range(at, len(data) - 3, 4):
        hash_ = rotate((hash_ + struct.unpack_from("<I", data, at)[0] * k3) & MASK, 17) * k4 & MASK
    for byte in data[len(data) & ~3:]:
        hash_ = rotate((hash_ + byte * k5) & MASK, 11) * k1 & MASK
    hash_ = (hash_ ^ hash_ >> 15) * k2 & MASK
    hash_ = (hash_ ^ hash_ >> 13) * k3 & MASK
    return hash_ ^ hash_ >> 16


def lz4_frame(*blocks, flags=0x60, size=0x40, extra=b"", tail=b"", end=True):
    """A frame of packed blocks; a block given as (bytes,) is stored as it is."""
    head = bytes([flags, size]) + extra
    out = struct.pack("<I", 0x184D2204) + head + bytes([xxh32(head) >> 8 & 255])
    for block in blocks:
        stored = isinstance(block, tuple)
        content = block[0] if stored else block
        out += struct.pack("<I", len(content) | (0x80000000 if stored else 0)) + content
    return out + (struct.pack("<I", 0) if end else b"") + tail


DAMAGED = "decompressionFailed"  # what liblz4 says of the content of blocks


def lz4_cases():
    abc = b"\x3fabc\x03\x00\x05\x50bcabc"  # 3 literals, 24 bytes of match, 5 literals
    plain = b"abc" * 9 + b"bcabc"
    checked = struct.pack("<I", xxh32(plain))
    sized = struct.pack("<Q", len(plain))
    reaching = b"\x08\x08\x00\x50bcdef"  # 12 bytes that begin in the block before
    yield "good", lz4_frame(abc), ""
    yield "good_stored", lz4_frame((b"abc",), b"\x30xyz"), ""
    yield "good_content_checksum", lz4_frame(abc, flags=0x64, tail=checked), ""
    yield "good_content_size", lz4_frame(abc, flags=0x68, extra=sized), ""
    skipped = struct.pack("<II", 0x184D2A51, 2) + b"xx"
    yield "good_two_frames", lz4_frame(abc) + skipped + lz4_frame((b"x",)), ""
    yield "good_linked_blocks", lz4_frame((b"abcdefgh",), reaching, flags=0x40), ""
    yield "good_empty", lz4_frame(), ""
    yield "empty_magic", b"\x04\x22\x4d", "is cut off"
    yield "other_magic", b"\x28\xb5\x2f\xfd" + bytes(20), "frameType_unknown"
    yield "cut_in_block", lz4_frame(abc)[:-8], "is cut off"
    yield "no_end_mark", lz4_frame(abc, end=False), "is cut off"
    yield ("header_checksum", lz4_frame(abc).replace(b"\x60\x40", b"\x64\x40"),
           "headerChecksum_invalid")
    yield "content_checksum", lz4_frame(abc, flags=0x64, tail=bytes(4)), "contentChecksum_invalid"
    yield "content_size", lz4_frame(abc, flags=0x68, extra=struct.pack("<Q", 99)), "frameSize_wrong"
    yield "good_dictionary_unused", lz4_frame(abc, flags=0x61, extra=bytes(4)), ""
    yield "version_2", lz4_frame(abc, flags=0xA0), "headerVersion_wrong"
    yield "block_size_code_1", lz4_frame(abc, size=0x10), "maxBlockSize_invalid"
    yield "match_before_data", lz4_frame(b"\x10a\x02\x00\x10b"), DAMAGED
    yield "match_before_block", lz4_frame((b"abcdefgh",), reaching), DAMAGED
    yield "match_of_distance_0", lz4_frame(b"\x10a\x00\x00\x10b"), DAMAGED
    yield "ends_in_match", lz4_frame(b"\x10a\x01\x00"), DAMAGED
    yield "literals_cut", lz4_frame(b"\xf0\x20abc"), DAMAGED
    yield "length_cut", lz4_frame(b"\xf0\xff\xff"), DAMAGED
    yield "distance_cut", lz4_frame(b"\x10a\x01"), DAMAGED
    yield "block_too_large", lz4_frame((bytes(70000),)), "maxBlockSize_invalid"
    def letters(count):
        return b"\x1fa\x01\x00" + b"\xff" * count + b"\x00\x50bbbbb"

    yield "bomb", lz4_frame(letters(400)), DAMAGED
    yield "huge", lz4_frame(*[letters(250)] * 20), "unpacks to more"
