//! That each built-in kind is named in its own room alone: `src/apiserver/kinds/GROUP/KIND.rs`.

use std::collections::{BTreeMap, BTreeSet};

use super::is_test;
use crate::repository::{root, rust_files};

/// The rooms of the kinds, and those of the admission plugins: upstream, too, writes a plugin for one kind or a few.
const ROOMS: [&str; 2] = ["src/apiserver/kinds/", "src/apiserver/admission/plugins/"];

/// Files outside that name a kind, and why they have to. Lines may go, and none may come.
const ELSEWHERE: [(&str, &str); 12] = [
    (
        "src/apiserver/admission/review.rs",
        "a namespace counts as lying in itself, as in upstream's RequestInfo",
    ),
    ("src/apiserver/authorization/mod.rs", "the authorizer reads the four kinds of RBAC"),
    (
        "src/apiserver/authorization/escalation.rs",
        "what a role or a binding grants, upstream's policybased storage",
    ),
    (
        "src/apiserver/http/audited/event.rs",
        "audit.k8s.io has an Event of its own, which is no built-in kind",
    ),
    ("src/apiserver/http/reviews.rs", "each review that is only asked is answered here"),
    ("src/apiserver/registry/from_files.rs", "the kinds that a folder of policies may hold"),
    ("src/apiserver/registry/pod_subresources.rs", "the target of a Binding is a node"),
    ("src/apiserver/registry/token_requests.rs", "what a token may be bound to"),
    ("src/apiserver/resources/info.rs", "the kinds of subresources, which have no rows"),
    ("src/apiserver/table/builtin.rs", "one printer for all kinds, as pkg/printers has it"),
    ("src/apiserver/table/workloads.rs", "one printer for all kinds, as pkg/printers has it"),
    ("src/apiserver/validation/metadata.rs", "Events own nothing, in upstream's list of banned owners"),
];

#[test]
fn no_kind_is_named_outside_its_room() {
    let kinds = served_kinds();
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in rust_files("src/apiserver").into_iter().filter(|file| !is_test(&file.path)) {
        let found = names(&file.text, &kinds);
        if !found.is_empty() {
            named.insert(file.path, found);
        }
    }
    let rooms = named.keys().filter(|path| ROOMS.iter().any(|room| path.starts_with(room))).count();
    assert!(rooms > 40, "this test finds no rooms: {rooms}");
    let listed: BTreeSet<&str> = ELSEWHERE.iter().map(|(path, _)| *path).collect();
    let mut wrong = Vec::new();
    for (path, found) in &named {
        if !ROOMS.iter().any(|room| path.starts_with(room)) && !listed.contains(path.as_str()) {
            wrong.push(format!("{path} names {found:?}: what it knows of them belongs into their rows"));
        }
    }
    for path in listed.into_iter().filter(|path| !named.contains_key(*path)) {
        wrong.push(format!("{path} names no kind any longer: strike it off"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The kinds of all rows.
fn served_kinds() -> BTreeSet<String> {
    let rows = std::fs::read_to_string(root().join("src/apiserver/resources/rows.txt")).unwrap();
    let kinds = rows.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    kinds.map(str::to_owned).collect()
}

/// The kinds that a source names in a text of its own. Objects that the server makes say what they are, after `"kind":`;
/// documentation and the tests of the file name what they like.
fn names(source: &str, kinds: &BTreeSet<String>) -> BTreeSet<String> {
    let code = source.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut found = BTreeSet::new();
    for line in lines {
        let pieces: Vec<&str> = line.split('"').collect();
        for at in (1..pieces.len()).step_by(2) {
            let is_made = at >= 2 && pieces[at - 2] == "kind" && pieces[at - 1].trim() == ":";
            if !is_made && kinds.contains(pieces[at]) {
                found.insert(pieces[at].to_owned());
            }
        }
    }
    found
}

#[test]
fn kinds_are_found_where_they_are_named() {
    let kinds = ["Pod", "Node"].map(str::to_owned).into();
    let source = "/// \"Pod\"\nmatch x { \"Node\" => json!({\"kind\": \"Pod\"}), _ => a }\n#[cfg(test)]\nmod tests {\n\"Pod\"}";
    assert_eq!(names(source, &kinds), ["Node".to_owned()].into());
}
