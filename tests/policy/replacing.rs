//! Sets with another text as one of their expressions: what is compiled alone is what the whole document makes.

use std::fs;
use std::path::{Path, PathBuf};

use admit_policy::manifest::{self, Document};
use admit_policy::schema::Schema;
use admit_policy::{ExpressionId, LoadErrorKind, Origin, PolicySet};
use serde_json::Value;

/// The documents of shipped policies, each with its binding, and the shipped definitions.
fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = [
        "policies/cyndi",
        "policies/datagather",
        "policies/mustgather",
        "policies/observability",
        "deploy/crds",
    ];
    let files =
        folders.iter().flat_map(|folder| fs::read_dir(root.join(folder)).expect("a folder").flatten());
    let mut files: Vec<PathBuf> = files.map(|entry| entry.path()).collect();
    let is_manifest = |name: &str| name.ends_with(".yaml") && !name.ends_with(".suite.yaml");
    files.retain(|path| path.file_name().is_some_and(|name| is_manifest(&name.to_string_lossy())));
    files.sort();
    files
}

fn read(path: &Path) -> Vec<Document> {
    let text = fs::read_to_string(path).expect("a file");
    manifest::read(&path.display().to_string(), &text).expect("documents")
}

/// Every expression of a set with its text.
fn expressions(set: &PolicySet) -> Vec<(ExpressionId, String)> {
    let policies = set.policies().flat_map(|(policy, _)| policy.expressions());
    let versions = set.documents().crds().iter().flat_map(|crd| crd.versions());
    let all = policies.chain(versions.flat_map(|version| version.expressions()));
    all.map(|expression| (expression.id, expression.text.to_owned())).collect()
}

/// Where the expression of a path stands: `spec.validations[0].expression` is `/spec/validations/0/expression`.
fn pointer(path: &str) -> String {
    let mut pointer = String::new();
    for step in path.split('.') {
        for part in step.split(['[', ']']).filter(|part| !part.is_empty()) {
            pointer.push('/');
            pointer.push_str(part);
        }
    }
    pointer
}

fn changed(document: &Value, id: &ExpressionId, text: &str) -> Option<Value> {
    let mut document = document.clone();
    let is_it =
        document["metadata"]["name"] == *id.origin.name() && !document["spec"]["policyName"].is_string();
    *document.pointer_mut(&pointer(&id.path)).filter(|_| is_it)? = text.into();
    Some(document)
}

/// Everything that is compiled of the policies, all expressions with their texts, and the schemas of the definitions.
fn compiled(set: &PolicySet) -> (Vec<String>, Vec<Schema>) {
    // Constants that are looked up are told in any order.
    let sorted = |text: String| {
        let mut words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
        words.sort_unstable();
        words.join(" ")
    };
    let policies = set.policies().map(|(policy, bindings)| sorted(format!("{policy:?} {bindings:?}")));
    let texts = expressions(set).into_iter().map(|(id, text)| format!("{id:?} {text}"));
    let versions = set.documents().crds().iter().flat_map(|crd| {
        let read =
            crd.definition().versions.iter().map(|version| version.schema.as_deref().cloned().expect("one"));
        read.chain(crd.versions().iter().map(|version| version.schema().clone()))
    });
    (policies.chain(texts).collect(), versions.collect())
}

#[test]
fn an_expression_compiled_alone_is_what_the_whole_document_makes() {
    let (mut alone, mut whole) = (0, 0);
    for file in files() {
        let documents = read(&file);
        let Ok(set) = PolicySet::load(&documents) else { continue };
        for (id, text) in expressions(&set) {
            // As a rule, a message and a variable may be, of which some change the type; with line breaks; with a pattern.
            let texts = [
                format!("!({text})"),
                format!("({text}) + 'x'"),
                "true".to_owned(),
                "1 +".to_owned(),
                "\ntrue".to_owned(),
            ];
            for text in texts.iter().chain([&text, &"'a'.matches('a+')".to_owned()]) {
                let Some(document) =
                    documents.iter().find_map(|document| changed(&document.value, &id, text))
                else {
                    continue;
                };
                let expected: Result<PolicySet, Vec<LoadErrorKind>> = set.with(&document);
                whole += usize::from(expected.is_ok());
                if let Some(found) = set.with_expression(&id, text) {
                    let expected = expected.unwrap_or_else(|errors| panic!("{id:?}: {text}: {errors:?}"));
                    assert!(compiled(&found) == compiled(&expected), "{id:?}: {text}");
                    alone += 1;
                }
            }
        }
    }
    assert!(whole > 300 && alone * 2 > whole, "{alone} of {whole}");
}

#[test]
fn what_is_not_there_is_not_replaced() {
    let set = PolicySet::default();
    let of = |origin: Origin| ExpressionId { origin, path: "spec.validations[0].expression".to_owned() };
    let name = || "a".to_owned();
    for origin in [
        Origin::Policy { name: name() },
        Origin::Mutating { name: name() },
        Origin::Definition { name: name(), version: "v1".to_owned() },
    ] {
        assert!(set.with_expression(&of(origin), "true").is_none());
    }
}
