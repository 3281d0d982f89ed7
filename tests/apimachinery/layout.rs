//! What stands where in a text agrees with what the reader of documents makes of it.

use std::fs;
use std::path::{Path, PathBuf};

use admit_apimachinery::yaml::{Layout, SpotId, Step, Written, parse_values};
use proptest::prelude::*;
use serde_json::Value;

/// What the text of every scalar is read as, beside what the document has there. Numbers and the like have no text.
fn compare(text: &str, name: &str) -> usize {
    let layout = Layout::read(text);
    let trees = parse_values(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut compared = 0;
    for (root, tree) in layout.documents().zip(&trees) {
        compared += below(&layout, root, &tree.value, text, name);
    }
    compared
}

fn below(layout: &Layout, id: SpotId, value: &Value, text: &str, name: &str) -> usize {
    let Some(spot) = layout.spot(id) else { panic!("{name}: no spot") };
    if let (Some(style), Value::String(expected)) = (spot.style, value) {
        let written = Written::of(text, spot.value.clone(), style);
        assert_eq!(written.text(), expected, "{name}, {:?} at {:?}", style, spot.value);
        for (offset, _) in expected.char_indices() {
            // Line breaks that nobody wrote one by one stand in one place.
            let place = written.place(offset);
            assert_eq!(written.place(written.offset(place)), place, "{name}: {expected:?} at {offset}");
            let there = text.get(place..).and_then(|rest| rest.chars().next());
            let c = expected.get(offset..).and_then(|rest| rest.chars().next());
            let is_plain = c.is_some_and(|c| c.is_alphanumeric()) && there != Some('\\');
            assert!(!is_plain || there == c, "{name}: {c:?} of {expected:?} at {offset} is {there:?}");
        }
        return 1;
    }
    let children = layout.children(id);
    children
        .map(|child| {
            let value = match layout.spot(child).map(|spot| &spot.step) {
                Some(Step::Key(key)) => value.get(&**key),
                Some(Step::Item(index)) => value.get(*index),
                Some(Step::Document(_)) | None => None,
            };
            value.map_or(0, |value| below(layout, child, value, text, name))
        })
        .sum()
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())).flatten()
    {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(path);
        }
    }
}

#[test]
fn scalars_of_the_repository_are_read_as_documents_have_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for folder in ["policies", "deploy", "tests/policy/data"] {
        files(&root.join(folder), &mut found);
    }
    let mut compared = 0;
    for file in &found {
        let Ok(text) = fs::read_to_string(file) else { continue };
        // Of keys that are set twice the last value counts, and both stand in the text.
        if parse_values(&text).is_ok_and(|trees| trees.iter().all(|tree| tree.duplicates.is_empty())) {
            compared += compare(&text, &file.display().to_string());
        }
    }
    assert!(compared > 5_000, "{compared} scalars in {} files", found.len());
}

#[test]
fn every_way_of_writing_is_read() {
    for text in [
        "a: plain  \n",
        "a: plain\n  over\n\n  lines\nb: 1\n",
        "a: 'it''s'\n",
        "a: 'one\n  two\n\n  three'\n",
        "a: \"tab\\t\\x41 \\u00e4\\\n   joined \\\"q\\\" ü\"\n",
        "a: \"one  \n  two\"\n",
        "a: |\n  one\n    two\n\n  three\nb: 1\n",
        "a: |-\n\n  one\n  two\n\n\n",
        "a: |+\n  one\n\nb: 1\n",
        "a: >\n  one\n  two\n\n  three\n    deeper\n  four\n",
        "a: >-\n\n  one ä\n  two\n",
        "a: >+ # why\n  one\n\n\nb: 2\n",
        "- {a: x, b: 'y', c: \"z\"}\n- [ä, ö]\n",
        "a: |2\n    one\n   two\n",
        "a:\n  - b: >1\n       one\n     two\n  - |2\n      three\n",
        "a: |-\r\n  one\r\n  two\r\nb: x\r\n",
        "? ab\n: c\nd: &x e\nf: *x\n",
        "--- a\n--- b\n",
    ] {
        assert!(compare(text, text) > 0, "{text}");
    }
}

#[test]
fn what_stands_before_a_mistake_is_known() {
    let layout = Layout::read("a:\n  b: c\n  d: 'e\nf: g\n");
    assert!(layout.error().is_some());
    let root = layout.documents().next().unwrap_or_else(|| panic!("a document"));
    assert!(layout.find(root, &["a", "b"]).is_some());
}

proptest! {
    #[test]
    fn any_text_has_a_layout(text in "[ab:\\-|>'\" \n\t#&*?\\[\\]{},\\\\ä]{0,60}", at in 0_usize..70) {
        let layout = Layout::read(&text);
        let spot = layout.at(at).and_then(|id| layout.spot(id));
        if let Some((spot, style)) = spot.and_then(|spot| Some((spot, spot.style?))) {
            let written = Written::of(&text, spot.value.clone(), style);
            prop_assert!(written.offset(at) <= written.text().len());
        }
        for id in layout.ids() {
            prop_assert!(!layout.path(id).is_empty());
        }
    }
}
