//! Encodes audit annotations with keys that an API server accepts from a webhook.
//!
//! API servers prefix each key with the webhook's name and a slash, and drop keys that are not qualified names then, which
//! only their own log mentions (apiserver `pkg/admission/attributes.go`). The keys of policies contain a slash themselves.

use admit_apimachinery::go;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};

/// The longest name in a qualified name, in bytes.
const MAX_KEY: usize = 63;
/// The number of hexadecimal digits that distinguish shortened keys.
const DIGITS: usize = 8;

/// Returns the annotations as JSON, with dots instead of slashes in keys.
pub(super) fn for_webhook<'a>(
    annotations: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Map<String, Value> {
    annotations.into_iter().map(|(key, value)| (name(key), Value::from(value.as_str()))).collect()
}

/// Converts `demo-policy.example.com/high-replicas` to `demo-policy.example.com.high-replicas`; the beginning of a key that is too
/// long is replaced by a digest, since its end says most.
fn name(key: &str) -> String {
    let dotted = key.replace('/', ".");
    if dotted.len() <= MAX_KEY {
        return dotted;
    }
    let mut front = go::hex::encode(digest(&SHA256, key.as_bytes()));
    front.truncate(DIGITS);
    let mut from = dotted.len() - (MAX_KEY - DIGITS - 1);
    while !dotted.is_char_boundary(from) {
        from += 1;
    }
    let end = dotted.get(from..).unwrap_or_default();
    format!("{front}.{}", end.trim_start_matches(['.', '-', '_']))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether `text` is valid after the slash, by `IsQualifiedName`.
    fn is_name(text: &str) -> bool {
        let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        text.len() <= MAX_KEY
            && ends(text.chars().next())
            && ends(text.chars().last())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    }

    #[test]
    fn every_key_is_a_name_and_stays_apart_from_others() {
        let long = |c: &str| format!("{}/{}", c.repeat(240), "k".repeat(60));
        let keys = [
            "validation.policy.admission.k8s.io/validation_failure".to_owned(),
            "demo/key".to_owned(),
            long("a"),
            long("b"),
            format!("{}-/x", "a.".repeat(40)),
        ];
        let value = "v".to_owned();
        let names = for_webhook(keys.iter().map(|key| (key, &value)));
        assert_eq!(names.len(), keys.len(), "{names:?}");
        assert!(names.keys().all(|name| is_name(name)), "{names:?}");
        assert_eq!(names.keys().next().unwrap(), "validation.policy.admission.k8s.io.validation_failure");
    }
}
