//! What is read of a part that was changed is what reading all of the text comes to: values, places and layout.

use admit_apimachinery::yaml::{Change, Layout, Positions, Spot, Tree, parse_placed};
use proptest::prelude::RngCore as _;
use proptest::test_runner::{RngAlgorithm, TestRng};

const TEXTS: [&str; 5] = [
    "# about\nkind: A\nmetadata: {name: a,\n  labels: {b: c}}\nspec:\n  versions:\n  - name: v1\n    schema:\n      type: object\n      \
     properties:\n        a: {type: string}\n        b:\n          type: string\n          # why\n          x-rules:\n          \
     - rule: self.size() > 3\n          - rule: >-\n              self != 'a' &&\n              self != 'b'\n\n            message: no\n  \
     - name: v2\n  names: [a, b]\nstatus: {}\n",
    "a: 1\n---\nb:\n  c: |\n    text\n      more\n\n  d: |+\n    kept\n\n\n  e: 'x\n    y'\n...\n---\n- f: 1\n  g:\n- h: \"i\\\n     j\"\n- - k\n  - l: m\n",
    "items:\n-\n  a: 1\n-   b: 2\n    c:\n    - 1\n    -\n    - {d: e}\nlast:\n  x: ä 💡\n  y: plain\n    goes on\n\n    and on\n  z:\n",
    "a: &x\n  b: 1\nc: *x\nd:\n  <<: {e: 1}\n  f: 2\n",
    "one:\n two:\n  three:\n   four: 1\n   five: '''quoted'''\n  # less\n six: !!str 7\n? seven\n: eight\n\"nine\": ten # eleven\n",
];

const TYPED: [&str; 34] = [
    "\n",
    "\n\n",
    "\n  ",
    "\n    ",
    " ",
    "  ",
    "x",
    "ab",
    "'",
    "\"",
    ":",
    ": ",
    "- ",
    "-",
    "#",
    " # why",
    "|",
    ">-",
    "{",
    "}",
    "[",
    "]",
    ", ",
    "&a",
    "*a",
    "<<: ",
    "---\n",
    "\n...\n",
    "ä",
    "💡",
    "\t",
    "\nnew: 1\n",
    "\n  key: value\n",
    "%",
];

struct Read {
    trees: Vec<Tree>,
    layout: Layout,
}

impl Read {
    fn of(text: &str) -> Option<Self> {
        let (trees, layout) = parse_placed(text).ok()?;
        trees.iter().all(|tree| tree.duplicates.is_empty()).then_some(Self { trees, layout })
    }

    /// Reads what was changed alone; false where all has to be read.
    fn reread(&mut self, old: &str, new: &str) -> bool {
        let Some(mut reread) = self.layout.reread(old, new, Change::between(old, new)) else { return false };
        let document = self.layout.documents().position(|root| root == reread.document).expect("a document");
        let mut from_there = self.trees.iter_mut().skip(document);
        let tree = from_there.next().expect("as many trees as documents");
        // Keys that are no text, such as `~`, lead nowhere.
        if !reread.put(&mut tree.value, &mut tree.positions) {
            return false;
        }
        from_there.for_each(|tree| reread.move_behind(&mut tree.positions));
        self.layout.put(reread);
        true
    }

    fn shown(&self) -> (Vec<String>, Vec<&Positions>, Vec<&Spot>) {
        (
            self.trees.iter().map(|tree| tree.value.to_string()).collect(),
            self.trees.iter().map(|tree| &tree.positions).collect(),
            self.layout.ids().filter_map(|id| self.layout.spot(id)).collect(),
        )
    }
}

fn edited(random: &mut TestRng, text: &str) -> String {
    let mut below = |end: usize| usize::try_from(random.next_u32()).expect("a small number") % end.max(1);
    let boundary = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = boundary(below(text.len() + 1));
    let length = [0, 0, 0, 1, 2, 7][below(6)];
    let end = boundary((start + length).min(text.len())).max(start);
    let typed = if below(4) == 0 { "" } else { TYPED[below(TYPED.len())] };
    format!("{}{typed}{}", &text[..start], &text[end..])
}

#[test]
fn a_part_read_anew_is_what_all_of_the_text_says() {
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let (mut reread, mut read) = (0, 0);
    for original in TEXTS {
        let mut text = original.to_owned();
        let mut known = Read::of(&text).expect("YAML");
        for number in 0..1_200 {
            if number % 25 == 0 {
                original.clone_into(&mut text);
                known = Read::of(&text).expect("YAML");
            }
            let new = edited(&mut random, &text);
            let fresh = Read::of(&new);
            if known.reread(&text, &new) {
                let fresh = fresh.unwrap_or_else(|| panic!("{new:?} is no YAML, after {text:?}"));
                let ((values, positions, spots), fresh) = (known.shown(), fresh.shown());
                assert_eq!(values, fresh.0, "{text:?}\nto {new:?}");
                assert_eq!(spots, fresh.2, "{text:?}\nto {new:?}");
                assert!(positions == fresh.1, "{text:?}\nto {new:?}: {positions:?}, and not {:?}", fresh.1);
                reread += 1;
                text = new;
            } else if let Some(fresh) = fresh {
                known = fresh;
                read += 1;
                text = new;
            }
        }
    }
    assert!(reread > 1_000 && read > 500, "{reread} times a part was read, {read} times all of it");
}

#[test]
fn what_may_mean_more_than_its_part_is_not_read_alone() {
    let none = |old: &str, new: &str| {
        let layout = parse_placed(old).expect("YAML").1;
        assert!(layout.reread(old, new, Change::between(old, new)).is_none(), "{old:?} to {new:?}");
    };
    none("a: &x 1\nb: 2\n", "a: &x 1\nb: 3\n");
    none("a: 1\nb: 2\n", "a: 1\nc: 2\n");
    none("a: {\n  b: 1,\n  c: 2}\n", "a: {\n  b: 13,\n  c: 2\n");
    none("a:\n  b: 1\n", "a:\n  b: 1\n c: 2\n");
    none("a:\n  b: 1\nc: 2\n", "a:\n  b: 1c: 2\n");
    none("a: 1\nb: 2\n", "a: *x\nb: 2\n");
}
