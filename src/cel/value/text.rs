//! How Go prints a value inside an error text (`%v`).

use super::{List, Map, Value};
use crate::library::go::float;
use crate::library::runtime_type;

impl Value<'_> {
    /// The value as Go's `%v` prints it.
    #[must_use]
    pub(crate) fn go_text(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(b) => b.to_string(),
            Self::Int(i) => i.to_string(),
            Self::Uint(u) => u.to_string(),
            Self::Double(d) => float::general(*d),
            Self::String(s) => (*s).to_owned(),
            Self::List(list) => list_text(list),
            Self::Map(map) => map_text(map),
            Self::Type(ty) => runtime_type::name(ty).to_owned(),
            Self::Optional(None) => "optional.none()".to_owned(),
            Self::Optional(Some(inner)) => format!("optional({})", inner.go_text()),
            Self::Bytes(bytes) => {
                let numbers: Vec<_> = bytes.iter().map(u8::to_string).collect();
                format!("[{}]", numbers.join(" "))
            }
            Self::Duration(_) | Self::Timestamp(_) | Self::Opaque(_) => {
                runtime_type::name_of(self).to_owned()
            }
        }
    }
}

fn list_text(list: &List<'_>) -> String {
    let items: Vec<_> = list.iter().map(|item| item.go_text()).collect();
    format!("[{}]", items.join(", "))
}

fn map_text(map: &Map<'_>) -> String {
    let entries: Vec<_> =
        map.iter().map(|(key, value)| format!("{}: {}", key.go_text(), value.go_text())).collect();
    format!("{{{}}}", entries.join(", "))
}
