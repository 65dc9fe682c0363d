"""Good and hostile tokenizers, vocabularies, JSON lines, FASTA and text for make_corpus.py."""

import json

BPE = {"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "a": 1, "b": 2, "ab": 3, "<s>": 4},
       "merges": ["a b"]}
WORDPIECE = {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {
    "[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "he": 4, "##ll": 5, "##o": 6, ",": 7}}
ADDED = {"id": 4, "content": "<s>", "special": True}
TEMPLATE = {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                       {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [4], "tokens": ["<s>"]}}}
BYTES = {"type": "ByteLevel", "add_prefix_space": True}


def file(model=None, **parts):
    return json.dumps({"model": model or BPE, **parts}, ensure_ascii=False).encode()


def changed(base, **fields):
    return {**base, **fields}


def split(pattern, behavior="Isolated"):
    return {"type": "Split", "pattern": pattern, "behavior": behavior}


def tokenizer_good():
    yield "good_bpe", file(), ""
    yield "good_pairs", file(changed(BPE, merges=[["a", "b"]])), ""
    yield "good_byte_level", file(pre_tokenizer=BYTES, decoder={"type": "ByteLevel"}), ""
    yield "good_wordpiece", file(WORDPIECE, normalizer={"type": "BertNormalizer"}, pre_tokenizer={
        "type": "BertPreTokenizer"}, decoder={"type": "WordPiece"}), ""
    yield "good_template", file(added_tokens=[ADDED], post_processor=TEMPLATE), ""
    yield "good_steps", file(
        normalizer={"type": "Sequence", "normalizers": [
            {"type": "NFKC"}, {"type": "StripAccents"}, {"type": "Lowercase"}, {"type": "Strip"},
            {"type": "Prepend", "prepend": "a"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "b"}]},
        pre_tokenizer={"type": "Sequence", "pretokenizers": [
            {"type": "Whitespace"}, {"type": "Digits", "individual_digits": True},
            {"type": "Punctuation"}, {"type": "Metaspace", "prepend_scheme": "first"},
            split({"Regex": "\\p{L}+|\\s+(?!\\S)"})]},
        decoder={"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "a"}, "content": "b"},
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": "b", "start": 1, "stop": 1}]}), ""
    yield "good_roberta", file(pre_tokenizer=BYTES, added_tokens=[ADDED], post_processor={
        "type": "RobertaProcessing", "sep": ["<s>", 4], "cls": ["<s>", 4]}), ""
    yield "good_word_level", file(changed(WORDPIECE, type="WordLevel")), ""
    yield "good_gap", file(changed(BPE, vocab={"a": 0, "b": 900, "ab": 7, "?": 3})), ""


def tokenizer_cases():
    yield from tokenizer_good()
    yield "empty_file", b"", "is not JSON"
    yield "cut", file()[:-9], "is not JSON"
    yield "not_utf8", b'{"model": "\xff"}', "is not JSON"
    yield "list", b"[]", "no tokenizer.json"
    yield "no_model", b"{}", "no tokenizer.json"
    yield "nesting", b'{"model":' + b"[" * 300, "nested too deeply"
    yield "key_twice", b'{"model":{"type":"BPE","type":"BPE"}}', "twice"
    yield "unigram", file({"type": "Unigram", "vocab": []}), "model.type"
    yield "no_vocab", file({"type": "BPE"}), "model.vocab is missing"
    yield "no_merges", file({"type": "BPE", "vocab": {}}), "model.merges is missing"
    yield "vocab_list", file(changed(BPE, vocab=["a"])), "an object of tokens"
    for name, number in (("negative", -1), ("fraction", 0.5), ("huge", 2**62), ("text", "1"),
                         ("null", None), ("far", 2000)):
        yield f"id_{name}", file(changed(BPE, vocab={"a": number})), 'model.vocab["a"]'
    yield "id_twice", file(changed(BPE, vocab={"a": 0, "b": 0})), "another number"
    yield "token_empty", file(changed(BPE, vocab={"": 0})), "not empty"
    yield "unknown_unknown", file(changed(BPE, unk_token="zzz")), "model.unk_token"
    yield "merge_unknown", file(changed(BPE, merges=["a z"])), "model.merges[0]"
    yield "merge_three", file(changed(BPE, merges=["a b a"])), "model.merges[0]"
    yield "merge_list_of_one", file(changed(BPE, merges=[["a"]])), "two tokens"
    yield "merge_no_result", file(changed(BPE, merges=["b a"])), "result is a token"
    yield "merge_number", file(changed(BPE, merges=[1])), "need text"
    yield "dropout", file(changed(BPE, dropout=0.1)), "model.dropout"
    yield "regex_open", file(pre_tokenizer=split({"Regex": "(a"})), "regular expression"
    yield "regex_large", file(pre_tokenizer=split({"Regex": "((a{999}){999}){999}"})), "expression"
    yield "regex_missing", file(pre_tokenizer=split({})), "String is missing"
    yield "behavior", file(pre_tokenizer=split({"String": "a"}, "Gone")), "MergedWithPrevious"
    yield "bytes_not_last", file(pre_tokenizer={"type": "Sequence", "pretokenizers": [
        BYTES, {"type": "Whitespace"}]}), "must be the last step"
    yield "bytes_twice", file(pre_tokenizer={"type": "Sequence", "pretokenizers": [
        BYTES, BYTES]}), "must be the last step"
    yield "bytes_wordpiece", file(WORDPIECE, pre_tokenizer=BYTES), "ByteLevel"
    yield "normalizer_unknown", file(normalizer={"type": "Precompiled"}), "normalizer.type"
    yield "template_unknown", file(post_processor=TEMPLATE), ""
    yield "template_number", file(post_processor=changed(TEMPLATE, special_tokens={
        "<s>": {"ids": [77]}})), "the number of a token"
    yield "template_sequence", file(post_processor=changed(TEMPLATE, single=[
        {"Sequence": {"id": "C", "type_id": 0}}])), "A or B"
    yield "pad_unknown", file(padding={"pad_id": 99}), "padding.pad_id"
    yield "added_far", file(added_tokens=[changed(ADDED, id=10**7)]), "added_tokens[0].id"
    yield "added_empty", file(added_tokens=[changed(ADDED, content="")]), "not empty"
    yield "added_other_number", file(added_tokens=[changed(ADDED, id=1)]), "in the vocabulary"
    yield "decoder_unknown", file(decoder={"type": "CTC"}), "decoder.type"
    bomb = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 40}
    yield "growth", file(normalizer={"type": "Sequence", "normalizers": [bomb] * 30}), ""
    yield "growth_decoded", file(decoder={"type": "Sequence", "decoders": [bomb] * 30}), ""
    yield "deep_sequences", file(normalizer=sequence(12)), "sequences nested less deeply"


def sequence(depth):
    inner = {"type": "Lowercase"}
    for _ in range(depth):
        inner = {"type": "Sequence", "normalizers": [inner]}
    return inner


def vocabulary_cases():
    good = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\nhe\n##llo\n"
    yield "good", good, ""
    yield "good_crlf", good.replace(b"\n", b"\r\n"), ""
    yield "good_no_end", good[:-1], ""
    yield "good_unknown_only", b"[UNK]", ""
    yield "good_accents", good + "é\n##ß\n日\n".encode(), ""
    yield "empty_file", b"", "has no line [UNK]"
    yield "no_unknown", b"a\nb\n", "has no line [UNK]"
    yield "blank_line", b"[UNK]\n\na\n", ":2: is empty"
    yield "blank_first", b"\n[UNK]\n", ":1: is empty"
    yield "twice", b"[UNK]\na\nb\na\n", ":4: "
    yield "unknown_twice", b"[UNK]\n[UNK]\n", ":2: "
    yield "not_utf8", b"[UNK]\n\xff\n", "not UTF-8 at byte 6"
    yield "cut_character", b"[UNK]\n\xe6\x97", "not UTF-8"
    yield "surrogate", b"[UNK]\n\xed\xa0\x80\n", "not UTF-8"
    yield "overlong", b"[UNK]\n\xc0\x80\n", "not UTF-8"
    yield "line_ends_only", b"\n\n\n", ":1: is empty"
    yield "carriage_only", b"\r\n[UNK]\n", ":1: is empty"


def json_lines_cases():
    yield "good", b'{"a": 1, "b": "x"}\n{"a": -2.5e3, "b": "y"}\n', ""
    yield "good_blank_lines", b'\n{"a": true}\r\n\r\n{"a": false}', ""
    yield "good_mark", b'\xef\xbb\xbf{"a": "\xc3\xbc\\u00fc"}', ""
    yield "good_others_left_out", b'{"a": 1, "l": [1], "o": {"a": null}, "n": null}', ""
    yield "good_empty_text", b'{"a": ""}\n{"a": ""}', ""
    yield "good_more_fields_later", b'{"a": 1}\n{"a": 2, "b": 3}', ""
    yield "empty_file", b"", "has no lines"
    yield "blank_only", b"\n \n\t\r\n", "has no lines"
    yield "list", b"[1]", ":1: is not a JSON object"
    yield "number", b"\n1", ":2: is not a JSON object"
    yield "two_on_a_line", b'{"a":1}{"a":2}', ":1: is not JSON"
    yield "cut", b'{"a":1}\n{"a":', ":2: is not JSON"
    yield "over_two_lines", b'{"a":\n1}', ":1: is not JSON"
    yield "not_utf8", b'{"a":"\xff"}', ":1: is not JSON"
    yield "zero_bytes", b'{"a":1}\n\0\0', ":2: is not JSON"
    yield "missing", b'{"a":1}\n{"b":1}', ':2: has no field "a"'
    yield "other_kind", b'{"a":1}\n{"a":"1"}', ":2: field"
    yield "null", b'{"a":1}\n{"a":null}', "no number or text"
    yield "nothing_plain", b'{"a":[1]}', "has no field that is"
    yield "empty_object", b"{}", "has no field that is"
    yield "twice", b'{"a":1,"a":1}', "twice"
    yield "nesting", b'{"a":' + b"[" * 100, "nested too deeply"
    yield "nan", b'{"a":NaN}', "is not JSON"
    yield "too_large", b'{"a":1e999}', "is not JSON"


def fasta_cases():
    yield "good", b">a first\nACGT\nacgt\n>b\nRYSWKMBDHVN-\n", ""
    yield "good_crlf", b">a\r\nACGU\r\n", ""
    yield "good_no_end", b">a\nA", ""
    yield "good_blanks_and_notes", b"\n;note\n>a\n\nAC\n\n;x\nGT\n", ""
    yield "good_tab", b">a\tdescription\nA\t\n", ""
    yield "empty_file", b"", "has no records"
    yield "blank_only", b"\n\r\n", "has no records"
    yield "no_header", b"ACGT\n", ":1: does not begin"
    yield "fastq", b"@r\nACGT\n+\nIIII\n", ":1: does not begin"
    yield "no_name", b">\nA\n", ":1: the record has no name"
    yield "blank_name", b"> a\nA\n", ":1: the record has no name"
    yield "no_letters", b">a\n>b\nA\n", ":1: the record"
    yield "no_letters_at_end", b">a\nA\n>b", ":3: the record"
    yield "protein", b">a\nMKVE\n", "alphabet"
    yield "digit", b">a\nA1\n", ":2: "
    yield "blank_inside", b">a\nA C\n", ":2: "
    yield "high_byte", b">a\nA\xc3\xbc\n", "0xc3"
    yield "zero_byte", b">a\nA\0\n", "0x00"
    yield "twice", b">a\nA\n>a x\nA\n", ":3: the name"


def text_cases():
    yield "good", b"one\ntwo\n", ""
    yield "good_empty", b"", ""
    yield "good_mark", b"\xef\xbb\xbfx", ""
    yield "good_utf8", "größe 日本 😀\0".encode(), ""
    for name, bad in (("latin", b"gr\xfc\xdfe"), ("cut_two", b"a\xc3"), ("cut_three", b"\xe6\x97"),
                      ("cut_four", b"\xf0\x9f\x98"), ("tail", b"\x80"), ("overlong", b"\xc0\xaf"),
                      ("overlong_three", b"\xe0\x80\xaf"), ("overlong_four", b"\xf0\x80\x80\xaf"),
                      ("surrogate", b"\xed\xb0\x80"), ("too_large", b"\xf4\x90\x80\x80"),
                      ("f5", b"\xf5\x80\x80\x80"), ("utf16", b"\xff\xfea\0")):
        yield f"not_utf8_{name}", b"line\n" + bad, ":2: is not UTF-8"
