"""Good and hostile files of data sets for make_corpus.py."""


def cifar_records(*labels, pixel=7):
    """Records with these labels, each a number or a pair of them, and pictures of one colour."""
    return b"".join(bytes(label if isinstance(label, tuple) else (label,)) + bytes([pixel]) * 3072
                    for label in labels)


def cifar_cases():
    ten, hundred = b"10\n", b"100\n"
    yield "good", ten + cifar_records(0, 9), ""
    yield "good_one", ten + cifar_records(5, pixel=255), ""
    yield "good_hundred", hundred + cifar_records((0, 0), (19, 99)), ""
    yield "good_hundred_one", hundred + cifar_records((3, 42)), ""
    yield "empty_file", ten, "0 bytes are no records of 3073"
    yield "empty_hundred", hundred, "0 bytes are no records of 3074"
    yield "label_10", ten + cifar_records(3, 10), "record 1 (byte 3073): label 10 is too large"
    yield "label_255", ten + cifar_records(255), "record 0 (byte 0): label 255"
    yield "fine_100", hundred + cifar_records((0, 100)), "label 100 is too large"
    yield "coarse_20", hundred + cifar_records((20, 0)), "coarse label 20 is too large"
    yield "cut", ten + cifar_records(1)[:-1], "3072 bytes are no records"
    yield "cut_in_second", ten + cifar_records(1, 2)[:3100], "3100 bytes are no records"
    yield "one_byte_more", ten + cifar_records(1) + b"\0", "3074 bytes are no records of 3073"
    yield "label_only", ten + b"\1", "1 bytes are no records"
    yield "ten_as_hundred", hundred + cifar_records(1, 2), "6146 bytes are no records of 3074"
    yield "hundred_as_ten", ten + cifar_records((1, 2)), "3074 bytes are no records of 3073"
    yield "text", ten + b"airplane\n" * 50, "450 bytes are no records"
    yield "text_of_record_size", ten + b"airplanes" * 341 + b"1234", "label 97 is too large"


def libsvm_cases():
    yield "good", b"+1 1:0.5 3:-2\n-1 2:1e-3\n", ""
    yield "good_from_zero", b"1 0:0.5 3:-2\n2.5 2:1\n", ""
    yield "good_notes", b"# a note\n\n1 1:2 # why\r\n \t\n-1 4:1#\n", ""
    yield "good_tabs", b"1\t1:2\t3:4 \t5:6\n0\t\t2:1\n", ""
    yield "good_queries", b"3 qid:1 1:0.1 2:0\n1 qid:2 7:1\n", ""
    yield "good_sets", b"1,5 1:1\n 2:1\n0 3:1\n", ""
    yield "good_no_features", b"1\n-1\n", ""
    yield "good_not_ascending", b"1 3:1 1:2 2:0\n", ""
    yield "good_without_last_line_end", b"1 3:1", ""
    yield "empty_file", b"", "has no rows"
    yield "notes_only", b"# nothing\n\n#\n", "has no rows"
    yield "target_word", b"1 1:1\ngood 1:1\n", ':2: the target "good" is not a finite number'
    yield "target_nan", b"nan 1:1\n", "not a finite number"
    yield "target_inf", b"-inf 1:1\n", "not a finite number"
    yield "target_too_large", b"1e999 1:1\n", "not a finite number"
    yield "target_two_signs", b"+-1 1:1\n", "not a finite number"
    yield "target_lost", b"1:1 2:1\n", ":1: begins with a feature"
    yield "set_of_fractions", b"1,2 1:1\n0.5 1:1\n", ':2: label "0.5" is not a whole number'
    yield "set_with_sign", b"1,2 1:1\n-1 1:1\n", ":2: label -1 is out of range"
    yield "set_twice", b"4,1,4 1:1\n", "label 4 is there twice"
    yield "set_huge", b"1,134217728 1:1\n", "label 134217728 is out of range; need one below"
    yield "index_negative", b"1 -1:1\n", "feature -1 is out of range"
    yield "index_huge", b"1 134217728:1\n", "feature 134217728 is out of range"
    yield "index_2_to_64", b"1 18446744073709551616:1\n", "is not a whole number"
    yield "index_word", b"1 x:1\n", 'feature "x" is not a whole number'
    yield "index_twice", b"1 2:1 2:3\n", "feature 2 is there twice"
    yield "value_nan", b"1 2:nan\n", "feature 2 needs a finite value"
    yield "value_missing", b"1 2:\n", "finite value"
    yield "value_too_large", b"1 2:1e39\n", "finite value"
    yield "colon_missing", b"1 2\n", "finite value"
    yield "colon_twice", b"1 2:3:4\n", "finite value"
    yield "query_word", b"1 qid:x 1:1\n", 'qid "x" is not a whole number'
    yield "query_late", b"1 1:1\n1 qid:2 1:1\n", ":2: some rows have a qid"
    yield "query_lost", b"1 qid:1 1:1\n1 1:1\n", ":2: some rows have a qid"
    yield "query_behind", b"1 1:1 qid:2\n", 'feature "qid" is not a whole number'
    yield "csv", b"a,b,c\n1,2,3\n", 'label "a" is not a whole number'
    yield "zero_bytes", b"1 2:1\0\n", "finite value"
    yield "long_token", b"1 " + b"9" * 5000 + b":1\n", "is not a whole number"
    yield "not_utf8", b"\xff\xfe 1:1\n", "not a finite number"


def json_set_cases():
    yield "good", b'{"a":1,"b":2.5,"label":0}\n{"a":3,"b":4,"label":1}\n', ""
    yield "good_last_field", b'{"a":1,"b":7}\n{"a":3,"b":0.5}\n', ""
    yield "good_texts", b'{"class":"cat","a":1}\n{"class":"dog","a":2}\n{"class":"cat","a":3}\n', ""
    yield "good_renumbered", b'{"y":-1,"a":true}\n{"y":1,"a":false}\n', ""
    yield "text_input", b'{"a":"x","y":1}\n', "the field 'a' is text; inputs are numbers"
    yield "one_field", b'{"y":1}\n', "needs at least one input field"
    yield "no_fields", b'{"y":[1]}\n', "has no field"
    yield "empty_file", b"", "has no lines"
    yield "cut", b'{"a":1,"y":1}\n{"a":2,"y"', ":2"
    yield "field_missing", b'{"a":1,"y":1}\n{"a":2}\n', ":2"
    yield "text_among_numbers", b'{"a":1,"y":1}\n{"a":"x","y":1}\n', ":2"
    yield "number_among_texts", b'{"a":1,"y":"u"}\n{"a":2,"y":1}\n', ":2"
    yield "null", b'{"a":1,"y":1}\n{"a":null,"y":1}\n', ":2"
    yield "list", b"[1,2]\n", ":1"
    yield "csv", b"a,y\n1,2\n", ":1"
    yield "nan", b'{"a":nan,"y":1}\n', ":1"
    yield "too_large", b'{"a":1e999,"y":1}\n', ":1"
