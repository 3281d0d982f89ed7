//! Audit annotations under keys that an API server takes from a webhook.
//!
//! It puts the webhook's name and a slash in front of each key and drops what is then no qualified name, with a line in
//! its own log only (apiserver `pkg/admission/attributes.go`). The keys of policies hold a slash themselves.

use admit_apimachinery::go;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};

/// Bytes of the name in a qualified name.
const MAX_KEY: usize = 63;
/// Hexadecimal digits that tell shortened keys apart.
const DIGITS: usize = 8;

/// The annotations with each slash of a key as a dot, as JSON.
pub(super) fn for_webhook<'a>(
    annotations: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Map<String, Value> {
    annotations.into_iter().map(|(key, value)| (name(key), Value::from(value.as_str()))).collect()
}

/// `demo-policy.example.com/high-replicas` as `demo-policy.example.com.high-replicas`; the front of what is too long is
/// replaced by a digest of the whole, since the end says most.
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

    /// The rule of `IsQualifiedName` about the part after the slash.
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
