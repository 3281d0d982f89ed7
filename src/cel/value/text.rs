//! Formats values as Go prints them inside error messages (`%v`).

use admit_apimachinery::go::{duration, float};

use super::runtime_type;
use super::{List, Map, Opaque, Value};

impl Value<'_> {
    /// Formats the value as Go's `%v` does. Also covers what JSON cannot hold, such as a type or an address.
    #[must_use]
    pub fn go_text(&self) -> String {
        match self {
            Self::List(list) => list_text(list),
            Self::Map(map) => map_text(map),
            Self::Optional(None) => "optional.none()".to_owned(),
            Self::Optional(Some(inner)) => format!("optional({})", inner.go_text()),
            _ => self.plain(),
        }
    }

    /// The same for values that can be keys or list items in messages; of the others, the name of their type.
    pub(crate) fn plain(&self) -> String {
        match self {
            Self::Null => "0".to_owned(),
            Self::Bool(b) => b.to_string(),
            Self::Int(i) => i.to_string(),
            Self::Uint(u) => u.to_string(),
            Self::Double(d) => float::general(*d),
            Self::String(text) => (*text).to_owned(),
            Self::Bytes(bytes) => {
                let numbers: Vec<_> = bytes.iter().map(u8::to_string).collect();
                format!("[{}]", numbers.join(" "))
            }
            Self::Duration(span) => duration::format(span.0),
            Self::Timestamp(instant) => instant.to_string(),
            Self::Type(ty) => runtime_type::name(ty).to_owned(),
            Self::List(_) | Self::Map(_) | Self::Optional(_) | Self::Opaque(_) => {
                runtime_type::name_of(self).to_owned()
            }
        }
    }

    /// Returns the text of a number or time, as `string()` does; None for other values.
    pub(crate) fn number_text(&self) -> Option<String> {
        Some(match self {
            Self::Int(i) => i.to_string(),
            Self::Uint(u) => u.to_string(),
            Self::Double(d) => float::general(*d),
            Self::Duration(span) => format!("{}s", float::plain(duration::seconds(span.0))),
            Self::Timestamp(instant) => instant.to_string(),
            _ => return None,
        })
    }

    /// The Go type that cel-go holds the value in (`%T`).
    #[must_use]
    pub(crate) fn go_type(&self) -> &'static str {
        match self {
            Self::Null => "types.Null",
            Self::Bool(_) => "types.Bool",
            Self::Int(_) => "types.Int",
            Self::Uint(_) => "types.Uint",
            Self::Double(_) => "types.Double",
            Self::String(_) => "types.String",
            Self::Bytes(_) => "types.Bytes",
            Self::Duration(_) => "types.Duration",
            Self::Timestamp(_) => "types.Timestamp",
            Self::List(_) => "*types.baseList",
            Self::Map(_) => "*types.baseMap",
            Self::Type(_) => "*types.Type",
            Self::Optional(_) => "*types.Optional",
            Self::Opaque(opaque) => opaque.go_type(),
        }
    }
}

impl Opaque<'_> {
    fn go_type(&self) -> &'static str {
        match self {
            Self::Ip(_) => "cel.IP",
            Self::Cidr(..) => "cel.CIDR",
            Self::Quantity(_) => "cel.Quantity",
            Self::Url(_) => "cel.URL",
            Self::Semver(_) => "cel.Semver",
            Self::Format(_) => "cel.Format",
            Self::Authorization(_) | Self::Empty => "ref.Val",
            Self::Made(made) if made.type_name() == crate::types::PATCH => "*mutation.JSONPatchVal",
            Self::Made(_) => "*dynamic.ObjectVal",
            Self::Lost(_) => "*types.Err",
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
