//! Structs as errors of the API server show them: the server's own form of a part, in the order of its fields.

use admit_apimachinery::field_error::BadValue;
use admit_apimachinery::go;

/// A struct of texts.
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
