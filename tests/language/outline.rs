//! What files consist of: all that the documents have, each at its place.

use std::fs;
use std::path::{Path, PathBuf};

use admit_language::{Encoding, Symbol, SymbolKind, Workspace};
use admit_policy::manifest;
use admit_policy::{Documents, LoadOptions};
use serde_json::Value;

use crate::answers::{DEFINITION, POLICY, workspace};
use crate::support::shown;

fn told(text: &str, symbols: &[Symbol], depth: usize, out: &mut Vec<String>) {
    for symbol in symbols {
        let Symbol { name, detail, kind, range, named, parts } = symbol;
        let lines = (range.start.line, range.end.line);
        let named =
            if named.start.line == named.end.line { shown(text, named) } else { "several lines".to_owned() };
        out.push(format!("{}{kind:?} {name} ({detail}) {lines:?} {named}", " ".repeat(depth)));
        told(text, parts, depth + 1, out);
    }
}

#[test]
fn parts_have_their_names_and_places() {
    let workspace = workspace(Encoding::Utf16);
    let mut policy = Vec::new();
    told(POLICY, &workspace.symbols("policy.yaml"), 0, &mut policy);
    assert_eq!(
        policy,
        [
            "Document shops (ValidatingAdmissionPolicy) (0, 16) shops",
            " Variable doors () (8, 9) doors",
            " Rule // 💡 variables.doors variables.doors.size() > 0 && variables.doors.all(d, d.n… () (11, 15) several lines",
            " Rule variables.doors. () (16, 16) variables.doors.",
        ]
    );
    let mut definition = Vec::new();
    told(&DEFINITION, &workspace.symbols("shop.yaml"), 0, &mut definition);
    let rules: Vec<&String> = definition.iter().filter(|line| line.contains("Rule")).collect();
    assert_eq!(rules.len(), 2, "{definition:#?}");
    assert!(
        rules[0].contains("Rule self.doors.all(d, d.name != 'tür') || self.size > 1 (spec)"),
        "{rules:?}"
    );
}

#[test]
fn a_broken_text_has_no_parts_until_it_is_mended() {
    let mut workspace = workspace(Encoding::Utf16);
    let whole = workspace.symbols("policy.yaml");
    workspace.open("policy.yaml", format!("{POLICY}x: [\n"));
    assert!(workspace.symbols("policy.yaml").is_empty() && workspace.folds("policy.yaml").is_empty());
    workspace.open("policy.yaml", POLICY.to_owned());
    assert_eq!(workspace.symbols("policy.yaml"), whole);
    assert!(workspace.symbols("nowhere.yaml").is_empty());
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(path);
        }
    }
}

/// The parts that stand in `list` of the documents.
fn counted(documents: &[Value], lists: &[&str]) -> usize {
    let items =
        |document: &Value, list: &&str| document.pointer(list).and_then(Value::as_array).map_or(0, Vec::len);
    documents.iter().map(|document| lists.iter().map(|list| items(document, list)).sum::<usize>()).sum()
}

fn rules_of_schemas(value: &Value) -> usize {
    match value {
        Value::Object(map) => {
            let own = map.get("x-kubernetes-validations").and_then(Value::as_array).map_or(0, Vec::len);
            own + map.values().map(rules_of_schemas).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(rules_of_schemas).sum(),
        _ => 0,
    }
}

fn of_kind(symbols: &[Symbol], kind: SymbolKind) -> usize {
    symbols.iter().map(|symbol| usize::from(symbol.kind == kind) + of_kind(&symbol.parts, kind)).sum()
}

fn assert_nested(file: &Path, symbols: &[Symbol]) {
    for (symbol, next) in symbols.iter().zip(symbols.iter().skip(1)) {
        assert!(symbol.range.end <= next.range.start, "{}: {symbol:?} {next:?}", file.display());
    }
    for Symbol { name, range, named, parts, .. } in symbols {
        assert!(!name.trim().is_empty(), "{}", file.display());
        assert!(range.start <= named.start && named.end <= range.end, "{}: {name}", file.display());
        for part in parts {
            let is_within = range.start <= part.range.start && part.range.end <= range.end;
            assert!(is_within, "{}: {} in {name}", file.display(), part.name);
        }
        assert_nested(file, parts);
    }
}

#[test]
fn shipped_files_are_listed_whole() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = Vec::new();
    for folder in ["policies", "deploy/crds", "tests/analysis/data/attack"] {
        files(&root.join(folder), &mut all);
    }
    assert!(all.len() > 50, "{}", all.len());
    let mut found = 0;
    for file in all {
        let text = fs::read_to_string(&file).expect("the file is there");
        let Ok(documents) = manifest::read("a.yaml", &text) else { continue };
        let documents: Vec<Value> = documents.into_iter().map(|document| document.value).collect();
        let mut workspace =
            Workspace::new(Box::new(Documents::default()), LoadOptions::default(), Encoding::Utf8);
        workspace.open("a.yaml", text.clone());
        let symbols = workspace.symbols("a.yaml");
        assert_nested(&file, &symbols);
        assert_eq!(symbols.len(), documents.len(), "{}", file.display());
        let is = |kind: &str| documents.iter().any(|document| document["kind"] == kind);
        let rules = counted(&documents, &["/spec/validations"])
            + documents.iter().map(rules_of_schemas).sum::<usize>();
        if !is("AuthenticationConfiguration") && !is("DeviceClass") {
            assert_eq!(of_kind(&symbols, SymbolKind::Rule), rules, "{}", file.display());
        }
        let variables = counted(&documents, &["/spec/variables"]);
        assert_eq!(of_kind(&symbols, SymbolKind::Variable), variables, "{}", file.display());
        if is("Suite") {
            let lists = ["/cases", "/states", "/authentication", "/authorization", "/webhooks", "/devices"];
            let cases = counted(&documents, &lists);
            assert_eq!(of_kind(&symbols, SymbolKind::Case), cases, "{}", file.display());
        }
        found += of_kind(&symbols, SymbolKind::Rule) + of_kind(&symbols, SymbolKind::Case);
        let lines = text.lines().count();
        for (first, last) in workspace.folds("a.yaml") {
            assert!(first < last && last < lines, "{}: {first} {last} of {lines}", file.display());
        }
    }
    assert!(found > 300, "{found}");
}
