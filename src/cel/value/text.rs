//! Values as text: how Go prints them inside error texts (`%v`), and instants in RFC 3339.

use std::fmt;
use std::str::FromStr;

use super::{List, Map, Opaque, Timestamp, Value};
use crate::library::go::layout::{self, Layout};
use crate::library::go::{print, timestamp};

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&timestamp::format(*self))
    }
}

/// Why a text is no time, in Go's words: `parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimestampError(String);

impl fmt::Display for TimestampError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TimestampError {}

impl Timestamp {
    /// Reads a time as Go's `time.Parse` does.
    ///
    /// # Errors
    /// What Go says of a text that it does not read.
    pub fn parse(layout: Layout, text: &str) -> Result<Self, TimestampError> {
        layout::parse(layout, text).map_err(|error| TimestampError(error.to_string()))
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        Self::parse(Layout::Rfc3339, text)
    }
}

impl Value<'_> {
    /// The value as Go's `%v` prints it. Shows also what JSON cannot hold, such as a type or an address.
    #[must_use]
    pub fn go_text(&self) -> String {
        match self {
            Self::List(list) => list_text(list),
            Self::Map(map) => map_text(map),
            Self::Optional(None) => "optional.none()".to_owned(),
            Self::Optional(Some(inner)) => format!("optional({})", inner.go_text()),
            _ => print::plain(self),
        }
    }
}

impl Value<'_> {
    /// The Go type that cel-go holds the value in (`%T`).
    #[must_use]
    pub(crate) const fn go_type(&self) -> &'static str {
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
    const fn go_type(&self) -> &'static str {
        match self {
            Self::Ip(_) => "cel.IP",
            Self::Cidr(..) => "cel.CIDR",
            Self::Quantity(_) => "cel.Quantity",
            Self::Url(_) => "cel.URL",
            Self::Semver(_) => "cel.Semver",
            Self::Format(_) => "cel.Format",
            Self::Authorization(_) | Self::Empty => "ref.Val",
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
