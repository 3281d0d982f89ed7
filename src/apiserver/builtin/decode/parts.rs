//! Takes an object or a list apart, without reading what is in it.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// What an object or a list consists of, in the order of the text; of members of the same name, all.
pub(super) enum Parts<'b> {
    Members(Vec<(String, &'b RawValue)>),
    Items(Vec<&'b RawValue>),
}

impl<'b> Parts<'b> {
    /// None for a scalar.
    pub(super) fn of(text: &'b str) -> Option<Self> {
        matches!(text.bytes().next(), Some(b'{' | b'[')).then(|| serde_json::from_str(text).ok()).flatten()
    }
}

impl<'b> Deserialize<'b> for Parts<'b> {
    fn deserialize<D: Deserializer<'b>>(deserializer: D) -> Result<Self, D::Error> {
        struct Of;
        impl<'b> Visitor<'b> for Of {
            type Value = Parts<'b>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object or a list")
            }

            fn visit_map<A: MapAccess<'b>>(self, mut map: A) -> Result<Parts<'b>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Parts::Members(members))
            }

            fn visit_seq<A: SeqAccess<'b>>(self, mut list: A) -> Result<Parts<'b>, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    items.push(item);
                }
                Ok(Parts::Items(items))
            }
        }
        deserializer.deserialize_any(Of)
    }
}
