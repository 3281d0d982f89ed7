//! Every overload against every release: what the reference's environments offer, and nothing else.

use std::collections::BTreeSet;

use admit_cel::{Env, Mode, Version};

use crate::rows::{rows, version};

struct Row {
    overload: String,
    /// The compatibility version that brought it.
    offered: Version,
    built: Version,
    last: Version,
}

fn reference() -> Vec<Row> {
    let read = rows::<6>("overloads.tsv").into_iter();
    read.map(|[overload, _, offered, built, last, source]| {
        assert!(source.contains(' ') && source.ends_with(".go"), "{overload}: {source}");
        Row { overload, offered: version(&offered), built: version(&built), last: version(&last) }
    })
    .collect()
}

#[test]
fn every_release_offers_what_the_reference_offers_and_nothing_else() {
    let reference = reference();
    let mut wrong = Vec::new();
    for minor in 29..=37 {
        for (mode, compatible) in [(Mode::New, minor - 1), (Mode::Stored, minor)] {
            let release = Version(1, minor);
            let env = Env::of_release(release, mode);
            let ours: BTreeSet<&str> = env.overloads().map(|row| row.id).collect();
            let there = |row: &&Row| {
                row.offered <= Version(1, compatible) && row.built <= release && release <= row.last
            };
            let theirs: BTreeSet<&str> =
                reference.iter().filter(there).map(|row| row.overload.as_str()).collect();
            wrong.extend(theirs.difference(&ours).map(|id| format!("1.{minor} {mode:?}: {id} is missing")));
            wrong.extend(ours.difference(&theirs).map(|id| format!("1.{minor} {mode:?}: {id} is too many")));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}
