//! Suites with something wrong: each names the file, the line, the field and what to do.

use std::fmt::Write as _;
use std::fs;

use super::{admit, golden, text};
use crate::repository::root;

#[test]
fn every_mistake_is_told_with_its_place() {
    let folder = root().join("tests/product/suites/bad");
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert!(files.len() >= 25, "{files:?}");
    let mut told = String::new();
    for file in files {
        let file = file.to_str().unwrap();
        let output = admit(&folder, &["--crds", "../fixture/zz_generated.crd-manifests", file]);
        assert_eq!(output.status.code(), Some(2), "{file}: {}", text(&output.stderr));
        writeln!(told, "== {file}\n{}", text(&output.stderr).trim_end()).unwrap();
    }
    golden::check("bad.txt", &told);
}
