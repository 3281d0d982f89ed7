//! Represents a schema compactly in memory. One node type serves both the structural part and the value validations below
//! `allOf`/`anyOf`/`oneOf`/`not`; registration checks what the latter may contain.

use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;

use indexmap::IndexMap;
use serde_json::Value;

use super::format::is_known;
use super::{Enumeration, Pattern};

/// `type`.
///
/// ```
/// use admit_policy::schema::SchemaType;
///
/// assert_eq!(SchemaType::parse("integer").as_str(), "integer");
/// assert_eq!(SchemaType::parse("whole").as_str(), "whole", "for messages");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaType {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    /// Any other string; registration rejects it.
    Other(Box<str>),
}

impl SchemaType {
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            other => Self::Other(other.into()),
        }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Other(text) => text,
        }
    }
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListType {
    Atomic,
    Set,
    Map,
    Other(Box<str>),
}

/// `x-kubernetes-map-type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapType {
    Granular,
    Atomic,
    Other(Box<str>),
}

/// `additionalProperties`.
#[derive(Clone, Debug, PartialEq)]
pub enum AdditionalProperties {
    Allowed(bool),
    Schema(Box<Schema>),
}

/// `reason` of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    Invalid,
    Forbidden,
    Required,
    Duplicate,
    Other(Box<str>),
}

/// An item of `x-kubernetes-validations`, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub rule: String,
    pub message: String,
    pub message_expression: String,
    pub reason: Option<Reason>,
    pub field_path: String,
    pub optional_old_self: Option<bool>,
}

/// Value checks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checks {
    /// The format as written, also when no server checks it.
    pub format: Option<Box<str>>,
    pub maximum: Option<f64>,
    pub exclusive_maximum: bool,
    pub minimum: Option<f64>,
    pub exclusive_minimum: bool,
    pub multiple_of: Option<f64>,
    /// Code points.
    pub max_length: Option<i64>,
    /// Code points.
    pub min_length: Option<i64>,
    pub pattern: Option<Pattern>,
    pub max_items: Option<i64>,
    pub min_items: Option<i64>,
    pub unique_items: bool,
    pub max_properties: Option<i64>,
    pub min_properties: Option<i64>,
    pub required: Vec<Box<str>>,
    pub enumeration: Enumeration,
    pub all_of: Vec<Schema>,
    pub any_of: Vec<Schema>,
    pub one_of: Vec<Schema>,
    pub not: Option<Box<Schema>>,
}

/// The checks of one node. Most nodes have none, and then take no room for them: a definition may have tens of thousands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnChecks(Option<Box<Checks>>);

impl From<Checks> for OwnChecks {
    fn from(checks: Checks) -> Self {
        Self((checks != *NO_CHECKS).then(|| Box::new(checks)))
    }
}

impl Deref for OwnChecks {
    type Target = Checks;

    fn deref(&self) -> &Checks {
        self.0.as_deref().unwrap_or(&NO_CHECKS)
    }
}

impl DerefMut for OwnChecks {
    fn deref_mut(&mut self) -> &mut Checks {
        self.0.get_or_insert_default()
    }
}

static NO_CHECKS: LazyLock<Checks> = LazyLock::new(Checks::default);

/// Keywords that no custom resource may use; kept so that registration can name them, and the mistakes in them.
#[derive(Clone, Debug, PartialEq)]
pub enum Unsupported {
    Id,
    MetaSchema,
    Ref,
    PatternProperties,
    /// Dependencies that are schemas.
    Dependencies(Vec<(Box<str>, Schema)>),
    AdditionalItems,
    Definitions(Vec<(Box<str>, Schema)>),
    /// `items` is a list of schemas; also as it is written.
    ItemsList(Vec<Schema>, Value),
}

/// Keywords that validate nothing; registration checks whether they are set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    pub description: bool,
    pub title: bool,
    pub example: bool,
    pub external_docs: bool,
}

/// A node of the schema.
///
/// ```
/// use admit_policy::Path;
/// use admit_policy::schema::{self, SchemaType};
/// use serde_json::json;
///
/// let schema = schema::parse(
///     &json!({
///         "type": "object",
///         "properties": {"at": {"type": "string", "format": "clock"}},
///         "additionalProperties": {"type": "integer"},
///         "x-kubernetes-validations": [{"rule": "true"}],
///     }),
///     &Path::Nil,
/// )
/// .unwrap();
/// assert!(schema.is_type(&SchemaType::Object) && schema.has_rules());
/// assert!(schema.map_is_correlatable() && !schema.preserves_unknown_fields());
/// assert_eq!(schema.child("at").and_then(|at| at.unchecked_format()), Some("clock"));
/// assert_eq!(schema.additional_schema().map(|other| other.type_text()), Some("integer"));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    pub schema_type: Option<SchemaType>,
    pub nullable: bool,
    /// The default; a null default counts as none.
    pub default: Option<Value>,
    pub items: Option<Box<Self>>,
    pub properties: IndexMap<Box<str>, Self>,
    pub additional_properties: Option<AdditionalProperties>,
    pub int_or_string: bool,
    /// Only `true` may be registered.
    pub preserve_unknown_fields: Option<bool>,
    pub embedded_resource: bool,
    pub list_type: Option<ListType>,
    pub list_map_keys: Vec<Box<str>>,
    pub map_type: Option<MapType>,
    pub checks: OwnChecks,
    pub rules: Vec<Rule>,
    pub annotations: Annotations,
    pub unsupported: Vec<Unsupported>,
}

impl Schema {
    #[must_use]
    pub fn is_type(&self, expected: &SchemaType) -> bool {
        self.schema_type.as_ref() == Some(expected)
    }

    #[must_use]
    pub fn preserves_unknown_fields(&self) -> bool {
        self.preserve_unknown_fields == Some(true)
    }

    /// The schema of the entries that `properties` does not name.
    #[must_use]
    pub fn additional_schema(&self) -> Option<&Self> {
        match &self.additional_properties {
            Some(AdditionalProperties::Schema(schema)) => Some(schema),
            Some(AdditionalProperties::Allowed(_)) | None => None,
        }
    }

    /// The schema of one entry of an object: its property's, or that of all other entries.
    #[must_use]
    pub fn child(&self, key: &str) -> Option<&Self> {
        self.properties.get(key).or_else(|| self.additional_schema())
    }

    /// Whether old and new entries of the object belong together by key.
    #[must_use]
    pub fn map_is_correlatable(&self) -> bool {
        !matches!(self.map_type, Some(MapType::Other(_)))
    }

    /// The nodes right below: on the spine, and under logical keywords.
    pub(crate) fn children(&self) -> impl Iterator<Item = &Self> {
        let checks = &self.checks;
        let spine = self.properties.values().chain(self.items.as_deref()).chain(self.additional_schema());
        let logical = [&checks.all_of, &checks.any_of, &checks.one_of].into_iter().flatten();
        spine.chain(logical).chain(checks.not.as_deref())
    }

    /// The same nodes, each with its step in error paths: `properties[spec]`, `allOf[0]`.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (String, &Self)> {
        let checks = &self.checks;
        let properties = self.properties.iter().map(|(name, child)| (format!("properties[{name}]"), child));
        let items = self.items.as_deref().map(|child| ("items".to_owned(), child));
        let entries = self.additional_schema().map(|child| ("additionalProperties".to_owned(), child));
        let logical = [("allOf", &checks.all_of), ("anyOf", &checks.any_of), ("oneOf", &checks.one_of)];
        let logical = logical.into_iter().flat_map(|(keyword, parts)| {
            parts.iter().enumerate().map(move |(at, child)| (format!("{keyword}[{at}]"), child))
        });
        let not = checks.not.as_deref().map(|child| ("not".to_owned(), child));
        properties.chain(items).chain(entries).chain(logical).chain(not)
    }

    /// The node's format, where servers check no values against it.
    #[must_use]
    pub fn unchecked_format(&self) -> Option<&str> {
        let format = self.checks.format.as_deref()?;
        (!is_checked(format, self.schema_type.as_ref())).then_some(format)
    }

    /// Whether there are rules in the node or below it; those under `allOf` count only beside others.
    #[must_use]
    pub fn has_rules(&self) -> bool {
        !self.rules.is_empty()
            || self.items.as_deref().is_some_and(Self::has_rules)
            || self.additional_schema().is_some_and(Self::has_rules)
            || self.properties.values().any(Self::has_rules)
    }

    /// Whether an object of the schema, which may be one itself, has others embedded.
    pub(crate) fn embeds(&self) -> bool {
        self.embedded_resource
            || self.items.as_deref().is_some_and(Self::embeds)
            || self.additional_schema().is_some_and(Self::embeds)
            || self.properties.values().any(Self::embeds)
    }

    /// The node's type as error messages print it; empty where none is given.
    #[must_use]
    pub fn type_text(&self) -> &str {
        self.schema_type.as_ref().map_or("", SchemaType::as_str)
    }
}

/// Whether a server checks the format in values of this type.
#[must_use]
pub(super) fn is_checked(format: &str, schema_type: Option<&SchemaType>) -> bool {
    match schema_type {
        None | Some(SchemaType::String) => is_known(format),
        Some(SchemaType::Integer) => matches!(format, "int32" | "int64"),
        Some(SchemaType::Number) => matches!(format, "float" | "double"),
        Some(SchemaType::Object | SchemaType::Array | SchemaType::Boolean | SchemaType::Other(_)) => false,
    }
}
