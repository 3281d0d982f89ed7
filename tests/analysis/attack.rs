//! What gets past policies: holes of policies in use, before and after they were closed, and policies without one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use admit_analysis::attack::{Ask, Attacked, Finding, Inquiry};
use admit_apiserver::BuiltinKinds;
use admit_policy::manifest::{self, Document};
use admit_policy::{Builtins as _, GroupVersionKind, GroupVersionResource, Operation, PolicySet};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/analysis/data/attack").join(name)
}

fn entries(name: &str) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder(name)).expect("the folder is there");
    let mut paths: Vec<PathBuf> = listed.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

fn read(path: &Path) -> Vec<Document> {
    let text = fs::read_to_string(path).expect("the file is there");
    manifest::read(&path.display().to_string(), &text).expect("YAML")
}

fn creation(document: &Document) -> Ask {
    let kind = GroupVersionKind::of(&document.value);
    let catalogue = BuiltinKinds.catalogue().expect("built-in kinds have types");
    let plural = catalogue.kind(&kind).expect("a built-in kind").plural.as_str();
    let resource = GroupVersionResource::new(&*kind.group, &*kind.version, plural);
    Ask::creation(document.value.clone(), resource)
}

/// What is denied, where the folder has it: else it has to be found.
fn given(folder: &Path) -> Vec<Ask> {
    let file = folder.join("denied.yaml");
    if file.exists() { read(&file).iter().map(creation).collect() } else { Vec::new() }
}

/// What gets past the first policy of a file, and how long it took to find it.
fn attacked(path: &Path, given: &[Ask]) -> (Attacked, Duration) {
    let documents = read(path);
    let set = PolicySet::load(&documents).expect("policies that compile").knowing(&BuiltinKinds);
    let policy = set.policies().next().map(|(policy, _)| policy.name.to_string()).expect("a policy");
    let begun = Instant::now();
    let over = || begun.elapsed() > Duration::from_secs(60);
    let inquiry = Inquiry { set: &set, documents: &documents, policy: &policy, given, over: &over };
    let attacked = inquiry.attack().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    (attacked, begun.elapsed())
}

fn told(attacked: &Attacked) -> String {
    let line = |found: &Finding| {
        format!(
            "    {} {} ({}): {}; {}\n",
            found.family,
            found.path,
            found.differences,
            found.what,
            found.admitted.title()
        )
    };
    let undecided = attacked.undecided.map(|why| format!("    undecided: {why}\n"));
    attacked.findings.iter().map(line).chain(undecided).collect()
}

#[test]
fn holes_of_policies_in_use_are_found_before_they_were_closed_and_not_after() {
    let (mut before, mut after, mut report) = (0, 0, String::new());
    let holes = entries("holes");
    for hole in &holes {
        let name = hole.file_name().and_then(|name| name.to_str()).expect("a name");
        let given = given(hole);
        let expected = read(&hole.join("expected.yaml")).remove(0).value;
        let (open, time) = attacked(&hole.join("before.yaml"), &given);
        let is_expected = open
            .findings
            .iter()
            .any(|found| expected["family"] == found.family.as_str() && expected["path"] == *found.path);
        before += usize::from(is_expected);
        report += &format!("{name} before ({time:?}, {} tried): {is_expected}\n{}", open.tried, told(&open));
        let (closed, time) = attacked(&hole.join("after.yaml"), &given);
        assert!(closed.denied > 0, "{name}: {}", told(&closed));
        after += usize::from(!closed.findings.is_empty());
        report += &format!("{name} after ({time:?}, {} tried)\n{}", closed.tried, told(&closed));
    }
    if std::env::var_os("ADMIT_SHOW").is_some() {
        println!("{report}");
    }
    assert!(
        holes.len() >= 20 && before >= holes.len() - 2 && after == 0,
        "{before} before, {after} after:\n{report}"
    );
}

#[test]
fn each_family_finds_its_own_and_nothing_where_nothing_is() {
    let (mut wrong, mut report) = (0, String::new());
    for case in entries("families") {
        let name = case.file_name().and_then(|name| name.to_str()).expect("a name");
        let mut given = given(&case);
        if case.join("old.yaml").exists() {
            let old = read(&case.join("old.yaml")).remove(0).value;
            given.iter_mut().for_each(|ask| {
                (ask.operation, ask.old_object) = (Operation::Update, Some(old.clone()));
            });
        }
        let expected = read(&case.join("expected.yaml")).remove(0).value;
        let (found, _) = attacked(&case.join("policy.yaml"), &given);
        let is_right = if expected["family"] == "none" {
            let is_undecided = expected["undecided"] == true;
            found.findings.is_empty() && found.denied > 0 && found.undecided.is_some() == is_undecided
        } else {
            let is_it =
                |one: &Finding| expected["family"] == one.family.as_str() && expected["path"] == *one.path;
            found.findings.iter().any(is_it)
        };
        wrong += usize::from(!is_right);
        report += &format!("{name}: {is_right}\n{}", told(&found));
    }
    if std::env::var_os("ADMIT_SHOW").is_some() {
        println!("{report}");
    }
    assert_eq!(wrong, 0, "{report}");
}

#[test]
fn policies_without_holes_cause_hardly_an_alarm() {
    let (mut report, mut worst) = (String::new(), 0);
    let policies = entries("pod-security");
    assert_eq!(policies.len(), 16);
    for path in policies {
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        let (found, time) = attacked(&path, &[]);
        worst = worst.max(found.findings.len());
        report +=
            &format!("{name} ({time:?}, {} tried, {} denied)\n{}", found.tried, found.denied, told(&found));
        assert_eq!(found.undecided, None, "{name}\n{report}");
    }
    if std::env::var_os("ADMIT_SHOW").is_some() {
        println!("{report}");
    }
    assert!(worst <= 1, "{report}");
}
