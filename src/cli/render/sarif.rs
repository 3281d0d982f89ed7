//! Renders results with their locations as SARIF 2.1.0, the format of code scanning.

use admit_policy::manifest::Position;
use serde_json::{Value, json};

/// Renders one run of this program: its rules, by name and description, and its results.
pub(super) fn document(rules: &[(&str, &str)], results: &[Value]) -> String {
    let rules: Vec<Value> =
        rules.iter().map(|(id, text)| json!({"id": id, "shortDescription": {"text": text}})).collect();
    let driver = json!({"name": "admit", "version": env!("CARGO_PKG_VERSION"), "rules": rules});
    super::json(&json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }))
}

/// Creates one result; `level` is `error` or `warning`.
pub(super) fn result(rule: &str, level: &str, message: &str, file: &str, place: Position) -> Value {
    // SARIF requires relative references without a leading `./`.
    let uri = escaped(file.strip_prefix("./").unwrap_or(file));
    json!({
        "ruleId": rule,
        "level": level,
        "message": {"text": message},
        "locations": [{
            "physicalLocation": {
                "artifactLocation": {"uri": uri},
                "region": {"startLine": place.line, "startColumn": place.column},
            },
        }],
    })
}

/// Percent-encodes a path for a URI reference, except letters, digits and a few signs.
fn escaped(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/@+,".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn paths_are_references_of_uris() {
        for (path, uri) in [
            ("a/b-1.yaml", "a/b-1.yaml"),
            ("a b/é%.yaml", "a%20b/%C3%A9%25.yaml"),
            ("a:b#c?", "a%3Ab%23c%3F"),
        ] {
            assert_eq!(escaped(path), uri);
        }
    }
}
