//! ConfigMaps and Secrets: keys, size, and the keys that each type of Secret requires.

use admit_apimachinery::go;
use serde_json::{Map, Value};

use crate::status::{Cause, Causes};

/// All values of one object together, in bytes.
const SIZE_LIMIT: usize = 1 << 20;
const KEY_FORM: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
    'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

pub(super) fn config_map(object: &Value) -> Causes {
    let (data, binary) = (members(object, "data"), members(object, "binaryData"));
    let mut causes = Causes::default();
    let mut size = 0;
    for (field, own, other_name, other) in
        [("data", data, "binaryData", binary), ("binaryData", binary, "data", data)]
    {
        for (key, value) in own.into_iter().flatten() {
            causes.extend(key_causes(field, key));
            if other.is_some_and(|other| other.contains_key(key)) {
                let why = format!("duplicate of key present in {other_name}");
                causes.push(Cause::invalid(format!("{field}[{key}]"), &key.as_str().into(), &why));
            }
            let text = value.as_str().unwrap_or_default();
            size += if field == "data" { text.len() } else { decoded_length(text) };
        }
    }
    if size > SIZE_LIMIT {
        causes.push(Cause::too_long("", SIZE_LIMIT));
    }
    causes
}

pub(super) fn secret(object: &Value) -> Causes {
    let data = members(object, "data");
    let mut causes = Causes::default();
    let mut size = 0;
    for (key, value) in data.into_iter().flatten() {
        causes.extend(key_causes("data", key));
        size += decoded_length(value.as_str().unwrap_or_default());
    }
    if size > SIZE_LIMIT {
        causes.push(Cause::too_long("data", SIZE_LIMIT));
    }
    let has = |key: &str| data.is_some_and(|data| data.contains_key(key));
    let mut demand = |keys: &[&str]| {
        for key in keys.iter().filter(|key| !has(key)) {
            causes.push(Cause::required(format!("data[{key}]"), ""));
        }
    };
    match super::text(object, "type") {
        "kubernetes.io/dockercfg" => demand(&[".dockercfg"]),
        "kubernetes.io/dockerconfigjson" => demand(&[".dockerconfigjson"]),
        "kubernetes.io/ssh-auth" => demand(&["ssh-privatekey"]),
        "kubernetes.io/tls" => demand(&["tls.crt", "tls.key"]),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            demand(&["username", "password"])
        }
        "kubernetes.io/service-account-token" => {
            let account = object.pointer("/metadata/annotations/kubernetes.io~1service-account.name");
            if account.and_then(Value::as_str).is_none_or(str::is_empty) {
                causes.push(Cause::required("metadata.annotations[kubernetes.io/service-account.name]", ""));
            }
        }
        _ => {}
    }
    causes
}

fn members<'v>(object: &'v Value, name: &str) -> Option<&'v Map<String, Value>> {
    object.get(name).and_then(Value::as_object)
}

fn key_causes(field: &str, key: &str) -> Causes {
    let mut problems = Vec::new();
    if key.len() > 253 {
        problems.push("must be no more than 253 characters");
    }
    if key.is_empty() || !key.bytes().all(|c| c.is_ascii_alphanumeric() || b"-._".contains(&c)) {
        problems.push(KEY_FORM);
    }
    // As file names these would lead out of the folder that the keys are mounted in.
    if key == "." {
        problems.push("must not be '.'");
    } else if key == ".." {
        problems.push("must not be '..'");
    } else if key.starts_with("..") {
        problems.push("must not start with '..'");
    }
    problems.into_iter().map(|why| Cause::invalid(format!("{field}[{key}]"), &key.into(), why)).collect()
}

fn decoded_length(text: &str) -> usize {
    go::json::bytes(text).map_or(text.len(), |bytes| bytes.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_file_names() {
        let texts = |object: &Value| config_map(object).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(texts(&json!({"data": {"a.b": ""}})), Vec::<String>::new());
        assert_eq!(
            texts(&json!({"data": {"..": ""}})),
            ["data[..]: Invalid value: \"..\": must not be '..'"]
        );
        assert_eq!(
            texts(&json!({"data": {"k": "1"}, "binaryData": {"k": ""}})),
            [
                "data[k]: Invalid value: \"k\": duplicate of key present in binaryData",
                "binaryData[k]: Invalid value: \"k\": duplicate of key present in data"
            ]
        );
    }
}
