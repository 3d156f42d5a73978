"""WikiText-2, raw and with rare words replaced: tokens, vocabulary, sequences, damage, stand-ins."""

import collo_data
import numpy as np
import pytest
from collo import DataError, SettingError
from collo_data.wikitext import FOLDERS, WIKITEXT_2

TEXT = " \n = Title = \n \n the cat sat on the mat , the end \n"
TOKENS = "<eos> = Title = <eos> <eos> the cat sat on the mat , the end <eos>".split()


def write(data, text=TEXT, form="raw", folder=None):
    folder = data / "wikitext-2" / (FOLDERS[form] if folder is None else folder)
    folder.mkdir(parents=True)
    for split in WIKITEXT_2.splits:
        (folder / f"wiki.{split}.{form}").write_text(text, encoding="utf-8")
    return folder / f"wiki.train.{form}"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The smallest stand-ins, in both formats."""
    root = tmp_path_factory.mktemp("wikitext")
    return {form: collo_data.synthesize("wikitext-2", 1e-9, root / form, format=form) for form in WIKITEXT_2.formats}


@pytest.mark.parametrize("form, folder", [("raw", None), ("tokens", None), ("raw", "."), ("tokens", ".")])
def test_words_and_line_ends_become_ids_by_frequency(data, form, folder):
    write(data, form=form, folder=folder)
    text = collo_data.load("wikitext-2", length=len(TOKENS))
    (ids,) = text.__getitems__([0])
    assert ids.dtype == np.int64 and ids.shape == (1, len(TOKENS)) and len(text) == 1
    assert [text.words[index] for index in ids[0]] == TOKENS
    assert text.words[:4] == ["<unk>", "<eos>", "the", "="]
    assert (text.length, text.vocabulary, text.synthetic) == (len(TOKENS), 33278, False)


def test_rare_words_are_unknown_in_a_smaller_vocabulary(data):
    write(data)
    (ids,) = collo_data.load("wikitext-2", length=len(TOKENS), vocabulary=4)[0]
    assert ids.tolist() == [{"<eos>": 1, "the": 2, "=": 3}.get(token, 0) for token in TOKENS]


def test_the_unknown_word_of_the_text_is_the_unknown_token(data):
    write(data, " the <unk> the <unk> <unk> <unk> cat \n", "tokens")
    (ids,) = collo_data.load("wikitext-2", length=8)[0]
    assert ids.tolist() == [2, 0, 2, 0, 0, 0, 3, 1]


def test_the_vocabulary_is_that_of_the_training_text(data):
    path = write(data)
    path.with_name("wiki.test.raw").write_text(" dogs sat \n")
    (ids,) = collo_data.load("wikitext-2", "test", length=3)[0]
    words = collo_data.load("wikitext-2", length=3).words
    assert ids.tolist() == [0, words.index("sat"), 1]


def test_sequences_follow_each_other_and_the_rest_is_left_out(data):
    write(data)
    text = collo_data.load("wikitext-2", "val", length=4)
    (ids,) = text.__getitems__(range(len(text)))
    assert len(text) == len(TOKENS) // 4 and [text.words[index] for index in ids.ravel()] == TOKENS[: 4 * len(text)]


def test_of_lines_each_is_a_sequence_cut_or_filled_up_with_line_ends(data):
    write(data)
    text = collo_data.load("wikitext-2", length=6, packing="lines")
    ids, used = text.__getitems__([0, 1, 2, 3])
    assert len(text) == 4 and (ids.dtype, used.dtype) == (np.int64, bool)
    assert [[text.words[index] for index in row] for row in ids] == [
        6 * ["<eos>"], ["=", "Title", "=", "<eos>", "<eos>", "<eos>"], 6 * ["<eos>"],
        ["the", "cat", "sat", "on", "the", "mat"],
    ]  # fmt: skip
    assert used.sum(1).tolist() == [1, 4, 1, 6]
    text.cut(2)
    assert len(text) == 2 and text.__getitems__([1])[1].sum() == 4
    with pytest.raises(SettingError, match="`packing` is `words`: it is one of blocks, lines"):
        collo_data.load("wikitext-2", packing="words")


def test_only_line_feeds_end_a_line(data):
    write(data, "one\u2028two\x0bthree\n four")
    text = collo_data.load("wikitext-2", length=6)
    assert [text.words[index] for index in text[0][0]] == ["one", "two", "three", "<eos>", "four", "<eos>"]


@pytest.mark.parametrize("content, reason", [(b"", "holds no text"), (b"a \xff b", r"is no UTF-8 text \(byte 2\)")])
def test_a_bad_text_is_named_with_its_reason(data, content, reason):
    path = write(data)
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"{path.name}` {reason}: unpack the WikiText-2 archive again"):
        collo_data.load("wikitext-2", "test")
    assert not collo_data.check("wikitext-2").ok


def test_a_missing_text_and_an_empty_folder_are_named(data):
    path = write(data)
    path.with_name("wiki.valid.raw").unlink()
    with pytest.raises(DataError, match="wiki.valid.raw` is missing: unpack the WikiText-2 archive again"):
        collo_data.load("wikitext-2", "valid")
    for left in list(path.parent.iterdir()):
        left.unlink()
    path.parent.rmdir()
    with pytest.raises(DataError, match="holds neither wikitext-2-raw nor wikitext-2: unpack"):
        collo_data.load("wikitext-2")


def test_absurd_lengths_and_vocabularies_are_refused(data):
    write(data)
    with pytest.raises(DataError, match=f"has {len(TOKENS)} tokens, too few for a sequence of 1000: lower `length`"):
        collo_data.load("wikitext-2", length=1000)
    for bad in ({"length": 1}, {"vocabulary": 2}):
        with pytest.raises(SettingError, match="`(length|vocabulary)` is . *: it is"):
            collo_data.load("wikitext-2", **bad)


def test_a_real_text_is_compared_with_what_is_published(data):
    write(data, form="tokens")
    wrong = {
        line.what: (line.expected, line.found) for line in collo_data.check("wikitext-2").lines if line.ok is False
    }
    assert wrong["wiki.train.tokens, tokens"] == (2_088_628, len(TOKENS))
    assert wrong["wiki.test.tokens, sha1"][0] == "c7b8ce0aa086fb34dab808c5c49224211eb2b172"
    assert wrong["wiki.valid.tokens, lines"] == (3_760, 4)


# --- the stand-ins ---


def test_both_formats_of_a_stand_in_have_the_same_frequent_words(small):
    for form, place in small.items():
        assert collo_data.check("wikitext-2", place.folder).ok, form
    for split in WIKITEXT_2.splits:
        raw, tokens = (WIKITEXT_2.load(place, split, length=32, vocabulary=200) for place in small.values())
        assert np.array_equal(raw.ids, tokens.ids) and raw.words == tokens.words and raw.synthetic
        assert raw.ids.max() < 200
    assert "<unk>" in (small["tokens"].folder / "wikitext-2/wiki.train.tokens").read_text()
    assert "<unk>" not in (small["raw"].folder / "wikitext-2-raw/wiki.train.raw").read_text()


def test_a_stand_in_depends_on_its_seed(small, tmp_path):
    again, other = (collo_data.synthesize("wikitext-2", 1e-9, tmp_path / str(seed), seed=seed) for seed in (10, 11))
    first, second, third = (
        (place.folder / "wikitext-2-raw/wiki.train.raw").read_bytes() for place in (small["raw"], again, other)
    )
    assert first == second != third


def test_the_word_before_tells_much_about_the_next(small):
    train, valid = (
        WIKITEXT_2.load(small["raw"], split, length=32, vocabulary=300).ids.ravel() for split in ("train", "valid")
    )
    alone = np.bincount(train, minlength=300) + 1
    alone = alone / alone.sum()
    pairs = np.zeros((300, 300))
    np.add.at(pairs, (train[:-1], train[1:]), 1)
    after = (pairs + 5 * alone) / (pairs.sum(axis=1, keepdims=True) + 5)
    loss_alone, loss_after = -np.log(alone[valid]).mean(), -np.log(after[valid[:-1], valid[1:]]).mean()
    assert loss_alone < 0.9 * np.log(300) and loss_after < 0.7 * loss_alone
