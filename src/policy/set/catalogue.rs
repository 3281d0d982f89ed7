//! Describes the fields of built-in kinds as a graph of types, which shows what parts of one kind also occur in others. Callers supply
//! it, like everything about built-in kinds.

use admit_apimachinery::names::NameRule;
use serde_json::Value;

use crate::request::GroupVersionKind;

/// The kinds that a server has built in, and the types of their fields.
///
/// ```
/// use admit_policy::{
///     Catalogue, Connection, FieldShape, FieldType, GroupVersionKind, NameRule, Presence, ServedKind, Shape,
///     StableFields,
/// };
///
/// let field = |name: &str, of: FieldType| FieldShape {
///     name: name.to_owned(),
///     of,
///     required: false,
///     may_be_absent: true,
///     presence: Presence::WhereSet,
///     is_certain: false,
///     is_closed: false,
///     bounds: None,
///     keys: Vec::new(),
///     absent: None,
/// };
/// let catalogue = Catalogue {
///     shapes: vec![
///         Shape { name: "Cat".to_owned(), fields: vec![field("paws", FieldType::List(Box::new(FieldType::Shape(1))))] },
///         Shape { name: "Paw".to_owned(), fields: vec![field("claws", FieldType::Int)] },
///         Shape { name: "Call".to_owned(), fields: vec![field("loud", FieldType::Bool)] },
///     ],
///     kinds: vec![ServedKind {
///         kind: GroupVersionKind::new("example.com", "v1", "Cat"),
///         plural: "cats".to_owned(),
///         namespaced: true,
///         subresources: vec!["status".to_owned()],
///         connections: vec![Connection {
///             subresource: "call".to_owned(),
///             kind: GroupVersionKind::new("example.com", "v1", "CatCallOptions"),
///             shape: 2,
///         }],
///         shape: 0,
///         name: Some(NameRule::Subdomain),
///         fixed: vec!["paws".to_owned()],
///         stable: vec![StableFields {
///             paths: vec!["paws".to_owned()],
///             but: vec!["claws".to_owned()],
///             when: Some("!has(oldObject.paws)".to_owned()),
///         }],
///         fresh_status: Some(vec!["phase".to_owned()]),
///     }],
/// };
/// let cat = catalogue.kind(&GroupVersionKind::new("example.com", "v1", "Cat")).unwrap();
/// let paws = catalogue.field(cat.shape, "paws").unwrap();
/// assert_eq!(paws.of.shape(), Some(1));
/// assert!(catalogue.field(cat.connections[0].shape, "loud").is_some());
/// assert!(catalogue.shape(1).is_some_and(|paw| paw.name == "Paw"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// The types that have fields; others name them by their index.
    pub shapes: Vec<Shape>,
    /// The kinds, in the order of preference.
    pub kinds: Vec<ServedKind>,
}

/// A type that has fields. [`Catalogue`] has an example.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its name, which no other has: `io.k8s.api.core.v1.Container`.
    pub name: String,
    /// Its fields, those of embedded types among them.
    pub fields: Vec<FieldShape>,
}

/// A field. [`Catalogue`] has an example.
#[derive(Clone, Debug)]
pub struct FieldShape {
    /// Its name in JSON.
    pub name: String,
    /// What it holds.
    pub of: FieldType,
    /// Objects must have it.
    pub required: bool,
    /// What is left out differs from the zero value.
    pub may_be_absent: bool,
    /// When it is present.
    pub presence: Presence,
    /// Whether it is present and not null in every object that a server admits, by defaulting or validation. Unless
    /// `may_be_absent`, it is not the zero value either.
    pub is_certain: bool,
    /// Whether its strings are always among those of [`FieldType::OneOf`].
    pub is_closed: bool,
    /// The minimum and maximum integer in an object that a server admits, where the field is present.
    pub bounds: Option<(i64, i64)>,
    /// The fields that identify items of a list.
    pub keys: Vec<String>,
    /// The value that has the same effect as leaving the field out.
    pub absent: Option<Value>,
}

/// When a field is present in an object that a server read. [`Catalogue`] has an example.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Presence {
    /// Always, with some value.
    Always,
    /// Always; null where it has no value.
    MaybeNull,
    /// If its value is not the zero value of its type: `""`, `0`, `false`, `[]`, `{}`.
    WhereNotZero,
    /// If it was set.
    WhereSet,
}

/// What a field holds. [`Catalogue`] has an example.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FieldType {
    /// Any string.
    Text,
    /// One of these strings.
    OneOf(Vec<String>),
    /// A whole number.
    Int,
    /// A whole number of 32 bits.
    Int32,
    /// A number.
    Float,
    /// `true` or `false`.
    Bool,
    /// A number with a unit: `1Gi`.
    Quantity,
    /// An integer or a string.
    IntOrText,
    /// A time (RFC 3339).
    Time,
    /// Bytes, as a base64 string.
    Bytes,
    /// A value without known fields: any JSON.
    Other,
    /// The [shape](Catalogue::shapes) of that index.
    Shape(usize),
    /// Items.
    List(Box<Self>),
    /// Entries by name.
    Map(Box<Self>),
}

/// A kind that a server has built in. [`Catalogue`] has an example.
#[derive(Clone, Debug)]
pub struct ServedKind {
    /// Group, version and kind.
    pub kind: GroupVersionKind,
    /// The name of its resource.
    pub plural: String,
    /// Its objects live in namespaces.
    pub namespaced: bool,
    /// The subresources through which its objects are written.
    pub subresources: Vec<String>,
    /// The subresources through which clients connect to what its objects represent.
    pub connections: Vec<Connection>,
    /// The [shape](Catalogue::shapes) of its objects.
    pub shape: usize,
    /// The rule for the names of its objects; None where they are validated in another way.
    pub name: Option<NameRule>,
    /// Fields that no change leaves other than they were, with the names of those that they are in: `spec.selector`.
    pub fixed: Vec<String>,
    /// Fields that change in no way that matters, at times under a condition.
    pub stable: Vec<StableFields>,
    /// The fields that the status of a new object may have, since creation ignores the status; None for any.
    pub fresh_status: Option<Vec<String>>,
}

/// Fields whose meaning no update changes, if their parents are present before and after. Their spelling may change: quantities in
/// another unit, null for empty. [`Catalogue`] has an example.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct StableFields {
    /// Their names, with those of the fields that they are in: `spec.template`.
    pub paths: Vec<String>,
    /// The fields in them, or in their items, that may change.
    pub but: Vec<String>,
    /// An expression over `object` and `oldObject`: where it is not true, they may change.
    pub when: Option<String>,
}

/// A subresource that is connected to (`CONNECT`): `pods/exec`. [`Catalogue`] has an example.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Connection {
    /// Its name.
    pub subresource: String,
    /// The kind of its options: `PodExecOptions`.
    pub kind: GroupVersionKind,
    /// The [shape](Catalogue::shapes) of its options; types with equal fields share one.
    pub shape: usize,
}

impl Catalogue {
    /// Returns a kind; None if it is not built in.
    #[must_use]
    pub fn kind(&self, kind: &GroupVersionKind) -> Option<&ServedKind> {
        self.kinds.iter().find(|served| served.kind == *kind)
    }

    /// Returns a shape; None for an invalid index.
    #[must_use]
    pub fn shape(&self, index: usize) -> Option<&Shape> {
        self.shapes.get(index)
    }

    /// The field of that name.
    #[must_use]
    pub fn field(&self, shape: usize, name: &str) -> Option<&FieldShape> {
        self.shape(shape)?.fields.iter().find(|field| field.name == name)
    }
}

impl FieldType {
    /// The shape of the value, or of its items or entries.
    #[must_use]
    pub fn shape(&self) -> Option<usize> {
        match self {
            Self::Shape(index) => Some(*index),
            Self::List(of) | Self::Map(of) => of.shape(),
            Self::Text
            | Self::OneOf(_)
            | Self::Int
            | Self::Int32
            | Self::Float
            | Self::Bool
            | Self::Quantity
            | Self::IntOrText
            | Self::Time
            | Self::Bytes
            | Self::Other => None,
        }
    }
}
