//! Secrets: `stringData` becomes `data`, and the type is immutable.

use admit_apimachinery::go;
use serde_json::Value;

use crate::object;
use crate::status::{Cause, Causes};

pub(super) fn prepare(secret: &mut Value) {
    if let Some(Value::Object(plain)) = object::map_of(secret).shift_remove("stringData") {
        let data = object::member_mut(object::map_of(secret), "data");
        for (key, value) in plain {
            data.insert(key, go::base64::encode(value.as_str().unwrap_or_default()).into());
        }
    }
    let map = object::map_of(secret);
    if map.get("type").and_then(Value::as_str).is_none_or(str::is_empty) {
        map.insert("type".to_owned(), "Opaque".into());
    }
}

/// What of a Secret may not change.
pub(super) fn changes(secret: &Value, old: &Value) -> Causes {
    let mut causes = Causes::default();
    let text = |secret: &Value| secret.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if text(secret) != text(old) {
        causes.push(Cause::invalid("type", &text(secret).into(), "field is immutable"));
    }
    causes.extend(super::immutable::changes(secret, old, &["data"]));
    causes
}
