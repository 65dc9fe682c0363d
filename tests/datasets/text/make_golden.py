#!/usr/bin/env python3
"""Makes golden/*.json with Hugging Face's `tokenizers`: small tokenizers of seven kinds, and what
they make of difficult texts.

  pip install tokenizers && python3 tests/datasets/text/make_golden.py

Each <kind>.json is a tokenizer.json; cases.json holds for each kind and text the ids with special
tokens, the offsets (in bytes), and the text decoded from the ids. Stored with tokenizers 0.23.3.
"""

import gzip
import json
import os

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "golden")
SAMPLE = os.path.join(HERE, "../../../datasets/samples/text/austen_persuasion.txt.gz")
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

FOREIGN = ["naïve café Ångström Ünïcödé", "русский текст и ещё", "日本語の文章 中文字符",
           "ελληνικά γράμματα", "emoji 😀 and 👩‍👩‍👧 here", "price 12,345.67 € or ½"]

TEXTS = [
    "", " ", "   ", "a", "Hello, world!", " Hello", "Hello  world", "it's we'll DON'T I'VE",
    "Anne Elliot, with all her claims of birth, beauty, and mind, to throw herself away.",
    "tabs\tand\nlines\r\n\r\n  indented\n", "trailing spaces   ", "12345 67 8.9e-10 2026",
    "naïve café Ångström", "ＦＵＬＬ ｗｉｄｔｈ ﬁ ligature", "русский текст", "日本語の文章と中文字符。",
    "한국어 문장", "العربية", "हिन्दी में", "ไทย", "emoji 😀👍🏽 👩‍👩‍👧 🇩🇪", "Ünïcödé ÀÉÎ İstanbul ß ẞ",
    "a\u0300e\u0301 decomposed", "zero\u200bwidth soft\u00adhyphen nbsp\u00a0here",
    "control\x01\x7f\x85chars", "\ufeffmark", "quotes “curly” ‘single’ — dash…",
    "snake_case CamelCase x+y=z",
    "http://example.org/path?q=1&r=2#frag", "<|endoftext|>", "a<|endoftext|>b <s> </s> <mask> x",
    "[CLS] word [SEP] [MASK]ed", "unbelievablyunsegmentablewordwithoutanyspacesinit",
    "x" * 120, "!!!???...", "½ ² ³ Ⅷ ①", "𝔘𝔫𝔦 𝒞", "line\u2028separator\u3000ideographic",
    "\ud7a4", "ſharp K", "ﷺ", "don't can 't won't n't 's", "e.g. U.S.A. -- (a) [b] {c}",
]
PAIRS = [("What is this?", "A second text."), ("one", ""), ("Anne", "Captain Wentworth " * 3)]


def sample():
    with gzip.open(SAMPLE, "rt", encoding="utf-8") as file:
        return file.read()[:100_000]


def gpt2():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.train_from_iterator([sample()], trainers.BpeTrainer(
        vocab_size=700, min_frequency=2, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return t


def roberta():
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    t.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True)]
    t.train_from_iterator([sample()] + FOREIGN, trainers.BpeTrainer(
        vocab_size=500, special_tokens=special, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return t


def llama3():
    t = Tokenizer(models.BPE(ignore_merges=True))
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator([sample()] + FOREIGN, trainers.BpeTrainer(
        vocab_size=500, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.add_special_tokens(["<|endoftext|>", "<s>"])
    t.add_tokens([AddedToken("Wentworth", single_word=True), AddedToken("word", rstrip=True)])
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B:1",
                                      special_tokens=[("<s>", t.token_to_id("<s>"))])])
    return t


def llama2():
    t = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    split = pre_tokenizers.Split("▁", "merged_with_next")  # for training only
    t.pre_tokenizer = split
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                   decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    t.train_from_iterator([sample()] + FOREIGN, trainers.BpeTrainer(
        vocab_size=700, special_tokens=special, show_progress=False))
    stored = json.loads(t.to_str())
    stored["pre_tokenizer"] = None
    stored["added_tokens"] = stored["added_tokens"][:3]
    t = Tokenizer.from_str(json.dumps(stored))
    t.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B:1", special_tokens=[("<s>", 1)])
    return t


def bert():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator([sample()] + FOREIGN, trainers.WordPieceTrainer(
        vocab_size=700, show_progress=False,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    t.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    t.enable_padding(pad_id=0, pad_token="[PAD]")
    return t


def words():
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(),
                                         normalizers.Lowercase(), normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.Punctuation()])
    t.decoder = decoders.BPEDecoder()
    t.train_from_iterator([sample()] + FOREIGN, trainers.BpeTrainer(
        vocab_size=500, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False))
    return t


def metaspace():
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    t.normalizer = normalizers.NFKC()
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    t.decoder = decoders.Metaspace(prepend_scheme="first")
    t.train_from_iterator([sample()] + FOREIGN, trainers.BpeTrainer(
        vocab_size=500, special_tokens=["<unk>", "<s>"], show_progress=False))
    return t


def encoded(t, text, pair=None):
    try:
        e = t.encode(text) if pair is None else t.encode(text, pair)
    except UnicodeEncodeError:
        return None
    texts = [text, pair or ""]
    starts = [[0], [0]]
    for which in (0, 1):
        for c in texts[which]:
            starts[which].append(starts[which][-1] + len(c.encode()))
    offsets = []
    for (begin, end), which in zip(e.offsets, e.sequence_ids):
        offsets.append([0, 0] if which is None else [starts[which][begin], starts[which][end]])
    case = {"text": text, "ids": e.ids, "offsets": offsets, "types": e.type_ids,
            "decoded": t.decode(e.ids)}
    if pair is not None:
        case["pair"] = pair
    return case


def main():
    os.makedirs(GOLDEN, exist_ok=True)
    cases = {}
    for make in (gpt2, roberta, llama3, llama2, bert, words, metaspace):
        t = make()
        name = make.__name__
        stored = json.loads(t.to_str())
        with open(os.path.join(GOLDEN, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(stored, file, ensure_ascii=False, separators=(",", ":"))
            file.write("\n")
        list_ = [encoded(t, text) for text in TEXTS]
        list_ += [encoded(t, a, b) for a, b in PAIRS]
        cases[name] = [c for c in list_ if c]
    with open(os.path.join(GOLDEN, "cases.json"), "w", encoding="utf-8") as file:
        json.dump(cases, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
