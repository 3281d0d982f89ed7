//! Any edits, one after the other, are as good as the text that they come to, and nothing panics.

use admit_language::{Encoding, Place, Workspace};
use admit_policy::{Documents, LoadOptions};
use proptest::prelude::RngCore as _;
use proptest::test_runner::{RngAlgorithm, TestRng};

use crate::answers::{DEFINITION, POLICY, workspace};

const EDITS: usize = 1_000;
/// How often all answers are compared: each takes as long as opening a file does.
const COMPARED: usize = 20;

const TYPED: [&str; 16] = [
    "\n",
    ".",
    "x",
    " ",
    "'",
    "\"",
    "self.",
    "object.spec",
    "variables.doors",
    "(",
    ")",
    ": ",
    "ä",
    "💡",
    "- expression: ",
    "&&",
];

#[test]
fn a_thousand_edits_come_to_the_same_as_their_text() {
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut edited = workspace(Encoding::Utf16);
    let mut compared = 0;
    for number in 0..EDITS {
        let (name, original) = [("policy.yaml", POLICY), ("shop.yaml", DEFINITION.as_str())][number % 2];
        let text = edited.text(name).expect("an open file").to_owned();
        let lines = u32::try_from(text.lines().count()).expect("few lines");
        let at = Place { line: random.next_u32() % (lines + 1), character: random.next_u32() % 60 };
        let end = Place { character: at.character + random.next_u32() % 4, ..at };
        let typed = TYPED[random.next_u32() as usize % TYPED.len()];
        edited.edit(name, at..end, typed);
        let _ = (edited.hover(name, at), edited.complete(name, end), edited.definition(name, at));
        let _ = edited.rename(name, at, "other");
        // Before everything is broken for good, begin anew.
        if number % 40 > 37 {
            edited.open(name, original.to_owned());
        }
        if number % (EDITS / COMPARED) == 0 {
            let mut fresh =
                Workspace::new(Box::new(Documents::default()), LoadOptions::default(), Encoding::Utf16);
            for file in edited.files().map(str::to_owned).collect::<Vec<_>>() {
                fresh.open(&file, edited.text(&file).expect("an open file").to_owned());
            }
            assert_eq!(edited.check(name), fresh.check(name), "after {number} edits");
            compared += 1;
        }
    }
    assert_eq!(compared, COMPARED);
}
