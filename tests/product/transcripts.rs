//! What people type at `admit up` beside the tour, with the real kubectl: `transcripts/*.sh`, in the form of the tour.

use std::fs;

use crate::repository::root;
use crate::running::Workplace;
use crate::tour::{has_kubectl, played, steps};

#[test]
fn commands_print_what_their_transcripts_say() {
    if !has_kubectl() {
        return;
    }
    let place = Workplace::new();
    let running = place.start();
    let mut files: Vec<_> = fs::read_dir(root().join("tests/product/transcripts"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty());
    let mut wrong = Vec::new();
    for file in files {
        let commands = steps(&fs::read_to_string(&file).unwrap());
        assert!(!commands.is_empty(), "{} has no commands", file.display());
        wrong.extend(played(&place, &commands).into_iter().map(|text| format!("{}: {text}", file.display())));
    }
    assert!(wrong.is_empty(), "{}\n\nlog of admit up:\n{}", wrong.join("\n\n"), place.log());
    assert!(running.terminate().success(), "SIGTERM must end `admit up` with 0:\n{}", place.log());
}
