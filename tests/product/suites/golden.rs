//! Every drawing of a report against a file, exactly; `ADMIT_UPDATE_GOLDEN=1` writes the files anew.

use std::fs;

use super::{admit, fixture, text};
use crate::repository::root;

/// Arguments, and the file that standard output must equal.
const DRAWINGS: &[(&str, &[&str])] = &[
    ("text.txt", &["failing.suite.yaml", "tests"]),
    ("verbose.txt", &["-v", "failing.suite.yaml", "broken.suite.yaml", "tests"]),
    ("result.json", &["-o", "json", "."]),
    ("junit.xml", &["-o", "junit", "."]),
    ("sarif.json", &["-o", "sarif", "."]),
    ("github.txt", &["-o", "github", "."]),
    ("tap.txt", &["-o", "tap", "."]),
    ("coverage.txt", &["--coverage", "failing.suite.yaml", "tests"]),
    ("require-tests.json", &["-o", "json", "--require-tests", "-run", "known prefix", "."]),
    ("require-tests.xml", &["-o", "junit", "--require-tests", "-run", "known prefix", "."]),
    ("require-tests.tap", &["-o", "tap", "--require-tests", "-run", "known prefix", "."]),
    ("require-tests.github.txt", &["-o", "github", "--require-tests", "-run", "known prefix", "."]),
    ("require-tests.sarif.json", &["-o", "sarif", "--require-tests", "-run", "known prefix", "."]),
    ("require-tests.txt", &["--require-tests", "-run", "no such case|known prefix|shrink$", "."]),
];

/// Holds `actual` against the file, or writes the file.
pub(super) fn check(name: &str, actual: &str) {
    let file = root().join("tests/product/golden/suites").join(name);
    if std::env::var_os("ADMIT_UPDATE_GOLDEN").is_some() {
        fs::write(&file, actual).unwrap();
        return;
    }
    let expected = fs::read_to_string(&file)
        .unwrap_or_else(|error| panic!("{}: {error}; ADMIT_UPDATE_GOLDEN=1 writes it", file.display()));
    assert_eq!(actual, expected, "{name}: if this is wanted, ADMIT_UPDATE_GOLDEN=1 writes the file anew");
}

#[test]
fn every_drawing_is_as_recorded() {
    for (name, arguments) in DRAWINGS {
        let output = admit(&fixture(), arguments);
        check(name, &without_times(&text(&output.stdout)));
    }
}

#[test]
fn coverage_files_are_as_recorded() {
    let folder = tempfile::TempDir::new().unwrap();
    let (lcov, html) = (folder.path().join("cov.info"), folder.path().join("cov.html"));
    let arguments = ["--coverage-lcov", lcov.to_str().unwrap(), "--coverage-html", html.to_str().unwrap()];
    admit(&fixture(), &[&arguments[..], &["failing.suite.yaml", "tests"]].concat());
    check("coverage.info", &fs::read_to_string(lcov).unwrap());
    check("coverage.html", &fs::read_to_string(html).unwrap());
}

/// Numbers that differ from run to run become `0`.
fn without_times(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let mut line = line.to_owned();
        for (before, after) in [("\"duration_us\": ", ""), (" time=\"", "\""), ("  ", " ms")] {
            line = zeroed(&line, before, after);
        }
        lines.push(line);
    }
    lines.join("\n") + "\n"
}

/// The line with the number that stands between two texts, the last such one, replaced.
fn zeroed(line: &str, before: &str, after: &str) -> String {
    let Some(at) = line.rfind(before) else { return line.to_owned() };
    let (head, rest) = line.split_at(at + before.len());
    let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    if digits == 0 || !rest[digits..].starts_with(after) {
        return line.to_owned();
    }
    format!("{head}0{}", &rest[digits..])
}
