//! Defines the strategy of Secrets. Read from pkg/apis/core/validation, pkg/apis/core/v1 (conversion, defaults), pkg/api/secret and
//! pkg/registry/core/secret of Kubernetes 1.36.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;
use admit_policy::json;
use serde_json::Value;

use super::frozen::{self, SIZE_LIMIT};
use super::key_pair;
use crate::kinds::field::Field;
use crate::kinds::{Habit, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "Secret",
    habits: &[Habit::ObjectAgain],
    default: Some(default),
    validate: Some(validate),
    validate_update: Some(validate_update),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

const ACCOUNT: &str = "kubernetes.io/service-account.name";

/// Moves `stringData` to `data`, and sets the default type `Opaque`.
fn default(_: &str, secret: &mut Value) {
    if let Some(Value::Object(plain)) = object::map_of(secret).shift_remove("stringData")
        && !plain.is_empty()
    {
        let data = object::member_mut(object::map_of(secret), "data");
        for (key, value) in plain {
            data.insert(key, go::base64::encode(value.as_str().unwrap_or_default()).into());
        }
    }
    let members = object::map_of(secret);
    if members.get("type").and_then(Value::as_str).is_none_or(str::is_empty) {
        members.insert("type".to_owned(), "Opaque".into());
    }
}

fn validate(secret: &Value, errors: &mut FieldErrors) {
    let root = Field::root(secret);
    let data = root.get("data");
    let mut size = 0_usize;
    for (key, value) in data.entries() {
        frozen::key(key, &value, errors);
        size = size.saturating_add(frozen::decoded_length(value.text()));
    }
    if i64::try_from(size).is_ok_and(|size| size > SIZE_LIMIT) {
        errors.add(|| data.too_long(SIZE_LIMIT));
    }
    let demand = |keys: &[&str], errors: &mut FieldErrors| {
        for key in keys.iter().filter(|key| !has(&data, key)) {
            errors.add(|| data.key(key).required(""));
        }
    };
    match root.get("type").text() {
        "kubernetes.io/dockercfg" => registries(&data, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => registries(&data, ".dockerconfigjson", errors),
        "kubernetes.io/ssh-auth" => demand(&["ssh-privatekey"], errors),
        "kubernetes.io/tls" => demand(&["tls.crt", "tls.key"], errors),
        "kubernetes.io/basic-auth" if !has(&data, "username") && !has(&data, "password") => {
            demand(&["username", "password"], errors);
        }
        "kubernetes.io/service-account-token" => {
            let account = root.get("metadata").get("annotations").key(ACCOUNT);
            if account.is_empty() {
                errors.add(|| account.required(""));
            }
        }
        _ => {}
    }
}

fn has(data: &Field<'_>, key: &str) -> bool {
    data.map().is_some_and(|data| data.contains_key(key))
}

/// Validates registry credentials, which must be a JSON object. Errors do not show the value.
fn registries(data: &Field<'_>, key: &str, errors: &mut FieldErrors) {
    let value = data.key(key);
    if !has(data, key) {
        errors.add(|| value.required(""));
        return;
    }
    let bytes = go::json::bytes(value.text()).unwrap_or_default();
    let why = match json::parse(&bytes).map(|document| document.value) {
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(other) => format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            go::json::kind(&other)
        ),
        Err(why) => why.to_string(),
    };
    errors.add(|| value.invalid_as("<secret contents redacted>", why));
}

fn validate_update(secret: &Value, old: &Value, errors: &mut FieldErrors) {
    validate(secret, errors);
    let (root, old) = (Field::root(secret), Field::root(old));
    root.get("type").immutable(&old.get("type"), errors);
    frozen::unchanged(&root, &old, &["data"], errors);
}

/// Warns about a certificate and a key that do not match.
fn warnings(secret: &Value, _: Option<&Value>) -> Vec<String> {
    let root = Field::root(secret);
    if root.get("type").text() != "kubernetes.io/tls" {
        return Vec::new();
    }
    let text = |key: &str| {
        let bytes = go::json::bytes(root.get("data").key(key).text()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let paired = key_pair::paired(&text("tls.crt"), &text("tls.key"));
    paired.err().map(|error| error.to_string()).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json as object;

    use super::*;

    #[test]
    fn registries_are_told_in_json() {
        let secret = |text: &str| object!({"type": "kubernetes.io/dockercfg", "data": {".dockercfg": go::base64::encode(text)}});
        let texts = |text: &str| {
            let mut errors = FieldErrors::default();
            validate(&secret(text), &mut errors);
            errors.into_iter().map(|error| error.to_string()).collect::<Vec<_>>()
        };
        let at = "data[.dockercfg]: Invalid value: \"<secret contents redacted>\":";
        assert_eq!(texts("{}"), Vec::<String>::new());
        assert_eq!(texts(""), [format!("{at} unexpected end of JSON input")]);
        assert_eq!(
            texts("[]"),
            [format!("{at} json: cannot unmarshal array into Go value of type map[string]interface {{}}")]
        );
    }
}
