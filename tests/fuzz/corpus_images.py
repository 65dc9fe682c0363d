"""Good and hostile pictures for make_corpus.py."""

import base64
import struct
import zlib

# 9×5 greys; 8×8 colours with a sampled chroma; the same, progressive; four inks.
GREY = base64.b64decode("""
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1R
V19iZ2hnPk1xeXBkeFxlZ2P/wAALCAAFAAkBAREA/8QAFQABAQAAAAAAAAAAAAAAAAAAAwT/xAAhEAABAwQBBQAAAAAAAAAA
AAABAgMSAAQRITEFFFST0v/aAAgBAQAAPwAm0tjo713CFq3EdsyYTClRwpWydK2ODjiosjxLH0q+6//Z""")
COLOUR = base64.b64decode("""
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAgGBgcGBQgHBwcJCQgKDBQNDAsLDBkSEw8UHRofHh0aHBwgJC4nICIsIxwcKDcp
LDAxNDQ0Hyc5PTgyPC4zNDL/2wBDAQkJCQwLDBgNDRgyIRwhMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIy
MjIyMjIyMjIyMjIyMjL/wAARCAAIAAgDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAT/xAAZEAEAAgMAAAAAAAAA
AAAAAAAABQYjMqH/xAAVAQEBAAAAAAAAAAAAAAAAAAADBP/EABwRAAEDBQAAAAAAAAAAAAAAAAQAAQUCExQhIv/aAAwDAQAC
EQMRAD8AhgqNri4AgKkSLj7TQUsVh09L/9k=""")
PROGRESSIVE = base64.b64decode("""
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1R
V19iZ2hnPk1xeXBkeFxlZ2P/2wBDARESEhgVGC8aGi9jQjhCY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2Nj
Y2NjY2NjY2NjY2NjY2P/wgARCAAIAAgDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAP/xAAVAQEBAAAAAAAAAAAA
AAAAAAABA//aAAwDAQACEAMQAAABmJv/xAAVEAEBAAAAAAAAAAAAAAAAAAADAP/aAAgBAQABBQIwv//EABcRAAMBAAAAAAAA
AAAAAAAAAAACAxL/2gAIAQMBAT8BhVsH/8QAFxEBAAMAAAAAAAAAAAAAAAAAAgADEf/aAAgBAgEBPwFWLZ//xAAUEAEAAAAA
AAAAAAAAAAAAAAAA/9oACAEBAAY/An//xAAVEAEBAAAAAAAAAAAAAAAAAAAAYf/aAAgBAQABPyGD/9oADAMBAAIAAwAAABD3
/8QAFhEAAwAAAAAAAAAAAAAAAAAAABEh/9oACAEDAQE/EF1P/8QAFREBAQAAAAAAAAAAAAAAAAAAAEH/2gAIAQIBAT8QuP/E
ABUQAQEAAAAAAAAAAAAAAAAAAAAx/9oACAEBAAE/EIv/2Q==""")
CMYK = base64.b64decode("""
/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwAbEhQXFBEbFxYXHhwbIChCKyglJShROj0wQmBVZWRfVV1baniZgWpxkHNbXYW1hpCe
o6utq2eAvMm6pseZqKuk/8AAFAgACAAIBEMRAE0RAFkRAEsRAP/EABYAAQEBAAAAAAAAAAAAAAAAAAMABv/EABgQAQADAQAA
AAAAAAAAAAAAAAAGFUJi/9oADgRDAE0AWQBLAAA/ACj+RUXCaZ//2Q==""")

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(name, content=b"", checksum=None):
    crc = zlib.crc32(name + content) if checksum is None else checksum
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", crc)


def png(width, height, rows, kind=0, bits=8, extra=b"", interlace=0, end=chunk(b"IEND"),
        header=b""):
    """Rows of samples, each with its filter before it; the packed content is stored, not deflated,
    so that every zlib gives the same bytes."""
    content = b"".join(rows)
    packed = b"\x78\x01\x01" + struct.pack("<HH", len(content), len(content) ^ 0xFFFF) + content
    packed += struct.pack(">I", zlib.adler32(content))
    head = header or struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, interlace)
    return SIGNATURE + chunk(b"IHDR", head) + extra + chunk(b"IDAT", packed) + end


def png_cases():
    grey = png(3, 2, [b"\0\x01\x02\x03", b"\0\xfd\xfe\xff"])
    yield "good_grey.png", grey, ""
    yield "good_colour.png", png(2, 1, [b"\0" + bytes(range(6))], kind=2), ""
    yield "good_alpha.png", png(1, 2, [b"\0" + bytes(4), b"\0" + b"\xff" * 4], kind=6), ""
    yield "good_grey_alpha.png", png(1, 1, [b"\0\x55\x80"], kind=4), ""
    yield ("good_palette.png", png(4, 1, [b"\0\x1b"], kind=3, bits=2,
                                   extra=chunk(b"PLTE", bytes(range(12)))), "")
    yield "good_16_bits.png", png(2, 1, [b"\0\x12\x34\x56\x78"], bits=16), ""
    yield "good_1_bit.png", png(9, 1, [b"\0\xa5\x80"], bits=1), ""
    yield "good_filters.png", png(2, 5, [bytes([f, 9, 7]) for f in range(5)]), ""
    yield "good_interlaced.png", png(1, 1, [b"\0\x07"], interlace=1), ""
    text = chunk(b"tEXt", b"Title\0a note")
    yield "good_text_inside.png", png(3, 1, [b"\0abc"], extra=text), ""
    yield "cut_in_data.png", grey[:-20], "PNG is cut off"
    yield "cut_in_header.png", grey[:20], "is damaged"
    yield "no_end.png", png(3, 1, [b"\0abc"], end=b""), "PNG is cut off"
    yield "signature_only.png", SIGNATURE, "is damaged"
    yield ("checksum.png", grey.replace(b"\xfd\xfe\xff", b"\xfd\xfe\xfe"),
           "checksum of its part at byte 33 is wrong")
    yield "rows_missing.png", png(3, 3, [b"\0abc"]), "is damaged"
    yield "no_rows.png", png(3, 3, []), "is damaged"
    first = grey.index(b"IDAT") - 4
    yield ("empty_part_first.png", grey[:first] + chunk(b"IDAT") + grey[first:],
           "begin with an empty part")
    yield "filter_5.png", png(2, 1, [b"\5ab"]), "is damaged"
    yield "size_0.png", png(0, 1, [b"\0"]), "is damaged"
    yield "huge.png", png(60000, 60000, [b"\0abc"]), "is damaged"
    yield "long.png", png(1 << 20, 1, [b"\0abc"]), "1048576×1 pixels"
    yield "size_2_to_31.png", png(1 << 31, 1, [b"\0abc"]), "is damaged"
    yield "bits_3.png", png(2, 1, [b"\0a"], bits=3), "is damaged"
    yield "kind_5.png", png(2, 1, [b"\0ab"], kind=5), "is damaged"
    yield "palette_missing.png", png(2, 1, [b"\0\0\1"], kind=3), "is damaged"
    yield ("palette_of_7.png", png(2, 1, [b"\0\0\1"], kind=3, extra=chunk(b"PLTE", bytes(7))),
           "is damaged")
    yield "header_short.png", png(1, 1, [b"\0a"], header=bytes(5)), "is damaged"
    yield "header_twice.png", png(1, 1, [b"\0a"], extra=chunk(b"IHDR", bytes(13))), "is damaged"
    yield "no_header.png", SIGNATURE + chunk(b"IDAT", b"abc") + chunk(b"IEND"), "is damaged"
    yield ("length_4_billion.png", grey[:33] + b"\xff\xff\xff\xff" + grey[37:], "PNG is cut off")
    yield "data_no_zlib.png", SIGNATURE + grey[8:33] + chunk(b"IDAT", b"abcdef") + chunk(
        b"IEND"), "is damaged"


def bmp(width, height, rows, bits=24, offset=54, compression=0, palette=b"", header=40):
    content = struct.pack("<IiiHHIIiiII", header, width, height, 1, bits, compression, 0, 0, 0,
                          len(palette) // 4, 0) + palette + rows
    return b"BM" + struct.pack("<IHHI", 14 + len(content), 0, 0, offset) + content


def bmp_cases():
    row = b"\1\2\3\4\5\6\0\0"
    grey = b"".join(bytes([i, i, i, 0]) for i in range(256))
    yield "good_colour.bmp", bmp(2, 2, row + row), ""
    yield "good_top_down.bmp", bmp(2, -2, row + row), ""
    yield "good_palette.bmp", bmp(3, 1, b"\1\2\3\0", 8, 54 + 1024, palette=grey), ""
    yield "good_32_bits.bmp", bmp(1, 1, b"\1\2\3\0", 32), ""
    yield "cut.bmp", bmp(2, 2, row + row)[:-1], "BMP is cut off: 69 of 70 bytes"
    yield "cut_in_header.bmp", bmp(2, 2, row)[:25], "is damaged"
    yield "magic_only.bmp", b"BM", "is damaged"
    yield "huge.bmp", bmp(65000, 65000, row), "65000×65000 pixels"
    yield "packed.bmp", bmp(2, 2, row + row, compression=1), "is damaged"
    yield "bits_7.bmp", bmp(2, 2, row + row, bits=7), "is damaged"
    yield "header_39.bmp", bmp(2, 2, row + row, header=39), "is damaged"
    yield "width_0.bmp", bmp(0, 2, row + row), "0×2 pixels"
    yield "width_negative.bmp", bmp(-2, 2, row + row), "pixels"
    yield "offset_far.bmp", bmp(2, 1, row, offset=10**9), "BMP is cut off"


def jpeg_cases():
    yield "good_grey.jpg", GREY, ""
    yield "good_colour.jpg", COLOUR, ""
    yield "good_progressive.jpg", PROGRESSIVE, ""
    yield "good_cmyk.jpg", CMYK, ""
    yield "good_rest_after_end.jpg", GREY + b"more", ""
    yield "cut_in_scan.jpg", COLOUR[:-10], "JPEG is cut off"
    yield "cut_in_progressive.jpg", PROGRESSIVE[:-2], "JPEG is cut off"
    yield "cut_in_header.jpg", COLOUR[:100], "is damaged"
    yield "start_only.jpg", b"\xff\xd8", "is damaged"
    yield "no_scan.jpg", COLOUR[:COLOUR.index(b"\xff\xda")] + b"\xff\xd9", "it has no scan"
    size = COLOUR.index(b"\xff\xc0") + 5
    yield ("huge.jpg", COLOUR[:size] + b"\xfe\x00\xfe\x00" + COLOUR[size + 4:],
           "65024×65024 pixels")
    yield "height_0.jpg", COLOUR[:size] + b"\0\0" + COLOUR[size + 2:], "is damaged"
    yield "bits_12.jpg", COLOUR[:size - 1] + b"\x0c" + COLOUR[size:], "is damaged"
    codes = COLOUR.index(b"\xff\xc4") + 5
    yield ("codes_257.jpg", COLOUR[:codes] + bytes([16] * 15 + [17]) + COLOUR[codes + 16:],
           "a table of 257 codes")
    yield ("codes_4080.jpg", COLOUR[:codes] + b"\xff" * 16 + COLOUR[codes + 16:],
           "a table of 4080 codes")
    tables = COLOUR.index(b"\xff\xdb")
    yield "no_tables.jpg", COLOUR[:tables] + COLOUR[COLOUR.index(b"\xff\xc0"):], "lacks its tables"
    yield ("no_codes.jpg", COLOUR[:COLOUR.index(b"\xff\xc4")] + COLOUR[COLOUR.index(b"\xff\xda"):],
           "lacks its tables")


def image_cases():
    yield from png_cases()
    yield from bmp_cases()
    yield from jpeg_cases()
    yield "empty_file.png", b"", "is no JPEG, PNG or BMP"
    yield "text.png", b"not a picture\n", "is no JPEG, PNG or BMP"
    yield "gif.png", b"GIF89a" + bytes(30), "is no JPEG, PNG or BMP"
    yield "web.jpg", b"<html>404</html>", "is no JPEG, PNG or BMP"
