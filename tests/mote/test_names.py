"""Names of models: what is one, and which of several files it means."""

import pytest

from mote.store.names import Name, choose, is_name, parse_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("org/name", Name("org/name")),
        ("Org-1/Name_2.5", Name("Org-1/Name_2.5")),
        ("org/name:8w", Name("org/name", "", "8w")),
        ("org/name@v2", Name("org/name", "v2")),
        ("org/name@refs/pr/1:sub/x.mote", Name("org/name", "refs/pr/1", "sub/x.mote")),
    ],
)
def test_names(text, name):
    assert parse_name(text) == name
    assert str(name) == text


@pytest.mark.parametrize(
    "text",
    [
        "name", "x.mote", "dir/x.mote", "./org/name", "../org/name", "~/org/name", "/org/name", "org/name/", "a/b/c",
        "org/name with spaces", "org/../name", "org/name:", "org/name@", "org/name@../x", "org\\name", "-org/name", "",
        "org/näme",
    ],
)  # fmt: skip
def test_what_is_no_name(text):
    assert parse_name(text) is None


def test_paths_win(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert is_name("org/name")
    (tmp_path / "org").mkdir()
    (tmp_path / "org" / "name").write_bytes(b"")
    assert not is_name("org/name")


@pytest.mark.parametrize(
    ("files", "tag", "chosen"),
    [
        (["a.mote"], "", "a.mote"),
        (["a-8w.mote", "a-8da4w.mote"], "", "a-8da4w.mote"),
        (["a-8w.mote", "a-4w.mote"], "", None),
        ([], "", None),
        (["a-8w.mote", "a-8da8w.mote"], "8w", "a-8w.mote"),  # a word, not a part of one
        (["a-8w.mote", "a-4w.mote"], "a-4w", "a-4w.mote"),
        (["a-8w.mote", "sub/b.mote"], "b.mote", "sub/b.mote"),
        (["a-8w.mote", "b-8w.mote"], "8w", None),
        (["a-8w.mote"], "3w", None),
    ],
)
def test_which_of_several_files_is_meant(files, tag, chosen):
    assert choose(files, tag) == chosen
