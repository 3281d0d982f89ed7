//! Formats structs in error messages like the API server: its internal form of a part, in field order.

use admit_apimachinery::field_error::BadValue;
use admit_apimachinery::go;

/// Formats a struct with string fields.
pub(crate) fn of_texts(members: &[(&str, &str)]) -> BadValue {
    let mut shown = String::from("{");
    for (at, (name, text)) in members.iter().enumerate() {
        if at > 0 {
            shown.push(',');
        }
        go::json::push_string(&mut shown, name);
        shown.push(':');
        go::json::push_string(&mut shown, text);
    }
    shown.push('}');
    BadValue::Verbatim(shown)
}
