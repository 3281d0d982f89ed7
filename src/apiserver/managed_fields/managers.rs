//! Reads and writes `metadata.managedFields`: managers and the fields that they own.

use std::collections::BTreeMap;

use admit_apimachinery::go;
use serde_json::{Map, Value};

use super::path::{CodecError, FieldSet, from_json, to_json};
use crate::object;

/// A manager of fields, and the operation by which it owns them. Ordered by name, then in the order of the members below.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Manager {
    pub name: String,
    pub operation: Operation,
    /// Part of an updater's identity; empty for appliers, who have one entry for all versions.
    pub api_version: String,
    pub subresource: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    Apply,
    Update,
}

impl Operation {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

impl Manager {
    #[must_use]
    pub fn new(name: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let api_version = match operation {
            Operation::Apply => String::new(),
            Operation::Update => api_version.to_owned(),
        };
        let name = if name.is_empty() { "unknown" } else { name };
        Self { name: name.to_owned(), operation, api_version, subresource: subresource.to_owned() }
    }
}

/// The fields that a manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    pub set: FieldSet,
    /// The version of the paths.
    pub api_version: String,
    /// When the entry last changed, in UTC with whole seconds.
    pub time: Option<String>,
}

/// Estimated bytes of memory that an entry takes beside its fields: seven members and their strings.
const ENTRY: usize = 2 << 10;

pub type Managers = BTreeMap<Manager, Owned>;

/// Why `metadata.managedFields` cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    #[error("apiVersion must not be empty")]
    ApiVersion,
    #[error("missing fieldsType in managed fields entry {0}")]
    NoFieldsType(usize),
    #[error("invalid fieldsType {kind} in managed fields entry {0}", kind = go::quote(.1))]
    FieldsType(usize, String),
    #[error("error decoding set: {0}")]
    Fields(#[from] CodecError),
}

/// Reads the entries of an object's `metadata.managedFields`.
///
/// # Errors
/// Describes the first invalid entry.
pub fn decode(object: &Value) -> Result<Managers, EntryError> {
    let entries = entries(object).map_or(&[][..], Vec::as_slice);
    let mut managers = Managers::new();
    for (index, entry) in entries.iter().enumerate() {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err(EntryError::Operation),
        };
        match (text("apiVersion"), text("fieldsType")) {
            ("", _) => return Err(EntryError::ApiVersion),
            (_, "FieldsV1") => {}
            (_, "") => return Err(EntryError::NoFieldsType(index)),
            (_, other) => return Err(EntryError::FieldsType(index, other.to_owned())),
        }
        let owned = Owned {
            set: from_json(entry.get("fieldsV1").unwrap_or(&Value::Null))?,
            api_version: text("apiVersion").to_owned(),
            time: entry.get("time").and_then(Value::as_str).map(str::to_owned),
        };
        let manager = Manager {
            name: text("manager").to_owned(),
            ..Manager::new("", operation, text("apiVersion"), text("subresource"))
        };
        managers.insert(manager, owned);
    }
    Ok(managers)
}

/// Builds the list of entries: appliers first, then by time and name. None when there are no managers.
#[must_use]
pub fn encode(managers: Managers) -> Option<Value> {
    let mut sorted: Vec<(Manager, Owned)> = managers.into_iter().collect();
    sorted.sort_by(|(one, first), (two, second)| {
        (one.operation, &first.time, one).cmp(&(two.operation, &second.time, two))
    });
    let entries: Vec<Value> = sorted.into_iter().map(|(manager, owned)| entry(&manager, owned)).collect();
    (!entries.is_empty()).then_some(Value::Array(entries))
}

/// Estimates the memory of the result of [`encode`] in bytes.
#[must_use]
pub(super) fn weight(managers: &Managers) -> usize {
    managers
        .values()
        .map(|owned| ENTRY.saturating_add(super::path::weight(&owned.set)))
        .fold(0, usize::saturating_add)
}

/// Returns the raw list, if there is one.
#[must_use]
pub(super) fn entries(object: &Value) -> Option<&Vec<Value>> {
    object::meta(object, "managedFields").and_then(Value::as_array)
}

/// Whether a client requests a reset of all entries: by an empty list, or by one empty entry.
#[must_use]
pub(super) fn is_reset(object: &Value) -> bool {
    match entries(object).map(Vec::as_slice) {
        Some([]) => true,
        Some([only]) => only.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}

fn entry(manager: &Manager, owned: Owned) -> Value {
    let mut entry = Map::new();
    let mut put = |name: &str, text: &str| {
        if !text.is_empty() {
            entry.insert(name.to_owned(), text.into());
        }
    };
    put("manager", &manager.name);
    put("operation", manager.operation.name());
    put("apiVersion", &owned.api_version);
    put("time", owned.time.as_deref().unwrap_or_default());
    put("fieldsType", "FieldsV1");
    entry.insert("fieldsV1".to_owned(), to_json(owned.set));
    if !manager.subresource.is_empty() {
        entry.insert("subresource".to_owned(), manager.subresource.as_str().into());
    }
    Value::Object(entry)
}

/// The entries that were removed from an object, and their position in its metadata.
pub(super) struct Entries(Option<(usize, Value)>);

impl Entries {
    const NAME: &str = "managedFields";

    pub(super) fn taken(object: &mut Value) -> Self {
        let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
        Self(metadata.and_then(|metadata| {
            let at = metadata.keys().position(|name| name == Self::NAME)?;
            Some((at, metadata.shift_remove(Self::NAME)?))
        }))
    }

    pub(super) fn put_back(self, object: &mut Value) {
        let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
        if let (Some((at, entries)), Some(metadata)) = (self.0, metadata) {
            metadata.shift_insert(at, Self::NAME.to_owned(), entries);
        }
    }
}
