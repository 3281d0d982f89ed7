//! The offline commands as their users see them: transcripts in `tests/product/offline/`, one file a subject, run in a
//! copy of `tests/product/offline/files`.
//!
//! `$ COMMAND` is followed by what the command prints to standard output, its standard error with `2> ` before each
//! line, and `=> CODE` unless that is 0. `admit` is the program under test. With `ADMIT_BLESS=1` the transcripts are
//! written anew from what is printed; the diff is then to be read.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use admit_apimachinery::yaml;
use serde_json::Value;
use tempfile::TempDir;

use crate::repository::root;
use crate::tour;

fn folder() -> PathBuf {
    root().join("tests/product/offline")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// What `command` prints and how it ends, as a transcript has it.
fn run(command: &str, place: &Path) -> String {
    let admit = Path::new(env!("CARGO_BIN_EXE_admit")).parent().unwrap();
    let path = std::env::join_paths(
        std::iter::once(admit.to_owned()).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let output = Command::new("bash")
        .args(["-c", command])
        .current_dir(place)
        .env("PATH", path.unwrap())
        .env("COLUMNS", "100")
        .env_remove("NO_COLOR")
        .output()
        .unwrap();
    let mut text = String::from_utf8(output.stdout).unwrap();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push_str("(no line feed)\n");
    }
    for line in String::from_utf8(output.stderr).unwrap().lines() {
        writeln!(text, "{}", format!("2> {line}").trim_end()).unwrap();
    }
    match output.status.code() {
        Some(0) => {}
        Some(code) => writeln!(text, "=> {code}").unwrap(),
        None => writeln!(text, "=> killed").unwrap(),
    }
    text
}

/// The transcript with every command run anew; comments and blank lines between commands stay.
fn replay(transcript: &str) -> String {
    let place = TempDir::new().unwrap();
    copy(&folder().join("files"), place.path());
    let mut text = String::new();
    let mut lines = transcript.lines().peekable();
    while let Some(line) = lines.next() {
        writeln!(text, "{line}").unwrap();
        let Some(command) = line.strip_prefix("$ ") else { continue };
        text.push_str(&run(command, place.path()));
        text.push('\n');
        // A command may print what looks like a comment; ours stand after a blank line.
        let mut blank = false;
        while let Some(line) =
            lines.next_if(|line| !(line.starts_with("$ ") || blank && line.starts_with("# ")))
        {
            blank = line.is_empty();
        }
    }
    text
}

/// Compares, or writes anew, the transcript of that subject.
fn check(subject: &str) {
    let file = folder().join(subject).with_extension("txt");
    let expected = fs::read_to_string(&file).unwrap();
    let actual = replay(&expected);
    if std::env::var_os("ADMIT_BLESS").is_some() {
        fs::write(&file, actual).unwrap();
        return;
    }
    let first = expected.lines().zip(actual.lines()).position(|(a, b)| a != b);
    assert!(
        expected == actual,
        "{}: differs from line {}; run with ADMIT_BLESS=1 and read the diff. Printed:\n{actual}",
        file.display(),
        first.map_or_else(|| expected.lines().count().min(actual.lines().count()) + 1, |line| line + 1)
    );
}

#[test]
fn every_transcript_is_run() {
    let mut found: Vec<_> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "txt"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            "attack", "check", "eval", "explain", "init", "inputs", "lint", "mutate", "plugins", "prove",
            "releases", "replay", "scan", "states", "usage"
        ]
    );
}

#[test]
fn attack() {
    check("attack");
}

#[test]
fn eval() {
    check("eval");
}

#[test]
fn check_manifests() {
    check("check");
}

#[test]
fn explain() {
    check("explain");
}

#[test]
fn plugins() {
    check("plugins");
}

#[test]
fn replay_of_logs() {
    check("replay");
}

#[test]
fn scan_of_what_stands() {
    check("scan");
}

#[test]
fn states_in_suites() {
    check("states");
}

#[test]
fn prove() {
    let has_solver = Command::new("z3").arg("--version").output().is_ok_and(|output| output.status.success());
    if !has_solver {
        return testing::skip(testing::Need::Z3, "there is no z3");
    }
    check("prove");
}

#[test]
fn mutate() {
    let has_solver = Command::new("z3").arg("--version").output().is_ok_and(|output| output.status.success());
    if !has_solver {
        return testing::skip(testing::Need::Z3, "there is no z3");
    }
    check("mutate");
}

#[test]
fn releases() {
    check("releases");
}

#[test]
fn lint() {
    check("lint");
}

#[test]
fn inputs() {
    check("inputs");
}

#[test]
fn usage() {
    check("usage");
}

#[test]
fn init() {
    check("init");
}

#[test]
fn what_init_writes_for_all_that_is_shipped_passes() {
    let place = TempDir::new().unwrap();
    for folder in ["policies", "deploy/crds"] {
        copy(&root().join(folder), &place.path().join(folder));
    }
    let told = run(
        "admit init policies deploy/crds --suite all.suite.yaml && admit test all.suite.yaml | tail -n 1",
        place.path(),
    );
    assert!(told.contains("\nPASS: ") && !told.contains("=> "), "{told}");
}

#[test]
fn the_readme_prints_what_it_says() {
    let place = TempDir::new().unwrap();
    for folder in ["policies", "deploy"] {
        copy(&root().join(folder), &place.path().join(folder));
    }
    let steps = tour::marked("offline");
    assert!(steps.len() > 4, "the README has only {} offline commands", steps.len());
    for step in steps {
        let told = run(&step.command, place.path());
        for expected in &step.prints {
            let printed = told.lines().any(|line| tour::matches(expected, line));
            assert!(printed, "$ {}\nshould print: {expected}\nprinted:\n{told}", step.command);
        }
        assert!(!told.contains("2> ") && !told.contains("=> 2"), "$ {}\n{told}", step.command);
    }
}

/// Every text in `value` that is a command of ours.
fn commands(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => text.strip_prefix("admit ").map(|_| text.as_str()).into_iter().collect(),
        Value::Array(items) => items.iter().flat_map(commands).collect(),
        Value::Object(entries) => entries.values().flat_map(commands).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

#[test]
fn the_readmes_recipes_for_ci_pass() {
    let place = TempDir::new().unwrap();
    for folder in ["policies", "deploy"] {
        copy(&root().join(folder), &place.path().join(folder));
    }
    let committed = "git init -q . && git add -A && git -c user.email=a@example.com -c user.name=a commit -qm one \
                     && git update-ref refs/remotes/origin/main HEAD";
    assert_eq!(run(committed, place.path()), "");
    let trees = yaml::parse(&tour::fenced("ci", "yaml")).unwrap();
    let commands: Vec<&str> = trees.iter().flat_map(|tree| commands(&tree.value)).collect();
    assert_eq!(commands.len(), 5, "{commands:?}");
    for command in commands {
        let told = run(command, place.path());
        assert!(!told.contains("2> ") && !told.contains("=> "), "$ {command}\n{told}");
    }
}

/// The names of the commands below `command`, as its help lists them.
fn commands_of(command: &str, place: &Path) -> Vec<String> {
    let help = run(&format!("{command} --help"), place);
    let list = help.split_once("\nCommands:\n").map(|(_, list)| list).unwrap_or_default();
    // A description that is too long goes on below itself.
    let lines = list.lines().take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(|name| format!("{command} {name}")).collect()
}

/// Each command has examples, and none is broken over two lines, which a shell would read as two commands.
#[test]
fn examples_of_the_help_can_be_pasted() {
    let place = tempfile::tempdir().unwrap();
    let mut commands = commands_of("admit", place.path());
    commands.extend(commands_of("admit generate", place.path()));
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands {
        let help = run(&format!("{command} --help"), place.path());
        let (_, examples) =
            help.split_once("\nExample").unwrap_or_else(|| panic!("{command} has no example"));
        let lines = examples.lines().skip(1).take_while(|line| !line.is_empty());
        for line in lines {
            let starts = line.starts_with("  ") && (line.contains("admit ") || line.contains("kubectl "));
            assert!(starts, "{command} --help breaks an example: {line}");
        }
    }
}
