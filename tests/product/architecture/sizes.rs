//! How long a file and a function may grow before somebody has to look for the seam.

use super::is_test;
use crate::repository::{SourceFile, rust_files};

/// Lines of a file, and of a function in it.
struct Limits {
    file: usize,
    function: usize,
}

const SOURCE: Limits = Limits { file: 450, function: 70 };

/// A test may tell a long story, and hold the table of its cases.
const TEST: Limits = Limits { file: 500, function: 75 };

fn limits(path: &str) -> Limits {
    if is_test(path) { TEST } else { SOURCE }
}

#[test]
fn files_stay_readable() {
    let long: Vec<_> = files()
        .filter(|file| file.text.lines().count() > limits(&file.path).file)
        .map(|file| format!("{} ({} lines)", file.path, file.text.lines().count()))
        .collect();
    assert!(long.is_empty(), "files past the limit; look for the seam:\n{}", long.join("\n"));
}

#[test]
fn functions_stay_readable() {
    let long: Vec<_> = files()
        .flat_map(|file| {
            let limit = limits(&file.path).function;
            let long = functions(&file.text).into_iter().filter(move |(_, lines)| *lines > limit);
            long.map(|(name, lines)| format!("{}: {name} ({lines} lines)", file.path)).collect::<Vec<_>>()
        })
        .collect();
    assert!(long.is_empty(), "functions past the limit; name their steps:\n{}", long.join("\n"));
}

fn files() -> impl Iterator<Item = SourceFile> {
    ["src", "tests"].into_iter().flat_map(rust_files)
}

/// Each function with its lines, from its `fn` to its brace: formatted sources close a block where it was indented.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<_> = text.lines().collect();
    let begins = lines.iter().enumerate().filter_map(|(at, line)| Some((at, name_of(line)?)));
    begins.filter_map(|(at, name)| Some((name, length(&lines[at..])?))).collect()
}

/// The name of the function that the line begins.
fn name_of(line: &str) -> Option<String> {
    let (before, after) = line.split_once("fn ")?;
    let word = |word: &str| {
        ["pub", "const", "async", "extern"].contains(&word) || word.starts_with("pub(") || word == "\"C\""
    };
    let name: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (before.split_whitespace().all(word) && !name.is_empty()).then_some(name)
}

/// The lines up to the one that ends what the first begins; none for a declaration.
fn length(lines: &[&str]) -> Option<usize> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own = indent(lines.first()?);
    for (at, line) in lines.iter().enumerate() {
        let same = indent(line) == own && !line.trim().is_empty();
        match line.trim_end() {
            end if same && end.ends_with(';') => return None,
            end if same && end.ends_with('}') => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[test]
fn functions_are_measured_from_name_to_brace() {
    let text = "fn one() { 1 }\n\npub(crate) async fn two(\n    a: u8,\n) -> u8 {\n    if a > 1 {\n        2\n    } else {\n        3\n    }\n}\n\
        trait T {\n    fn three();\n    fn four() {\n        let x = 1;\n    }\n}\n// not a fn five() {\n";
    let all = [("one", 1), ("two", 9), ("four", 3)].map(|(name, lines)| (name.to_owned(), lines));
    assert_eq!(functions(text), all);
}
