//! Folders of manifests that an API server reads by itself: what may not be in them.

use admit_policy::{LoadOptions, PolicySet, manifest};
use serde_json::Value;

/// A file of documents, which JSON is YAML of.
fn text(documents: &Value) -> String {
    let documents = documents.as_array().expect("documents");
    documents.iter().map(|document| format!("---\n{document}\n")).collect()
}

#[test]
fn static_manifests_are_restricted_in_the_words_of_the_server() {
    let rows =
        manifest::read("static_manifests.yaml", include_str!("data/static_manifests.yaml")).expect("is read");
    let cases = rows[0].value["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), 18);
    for case in cases {
        let files = case["files"].as_object().expect("files");
        let files: Vec<(&str, String)> =
            files.iter().map(|(name, documents)| (name.as_str(), text(documents))).collect();
        let loaded = PolicySet::load_files(
            files.iter().map(|(name, text)| (*name, text.as_str())),
            LoadOptions::default(),
        );
        let found: Vec<String> = loaded.err().into_iter().flatten().map(|error| error.to_string()).collect();
        let expected: Vec<&str> =
            case["errors"].as_array().expect("errors").iter().filter_map(Value::as_str).collect();
        let agree = found.len() == expected.len()
            && found.iter().zip(&expected).all(|(found, part)| found.contains(part));
        assert!(agree, "{}: {found:#?}", case["name"]);
    }
}
