//! Represents types of documents with a schema: what the checker knows of a field, how the evaluator reads a node, and the maximum size
//! for the estimator. The counterpart of Kubernetes' `DeclType` (apiserver `pkg/cel/types.go`).

use std::sync::Arc;

use super::Type;
use crate::names::is_reserved;

/// How two lists are compared and old items are correlated with new ones (`x-kubernetes-list-type`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum ListType {
    /// A list is one value: equal if its items are, in their order.
    #[default]
    Atomic,
    /// Items are unique, and their order does not matter.
    Set,
    /// Items are identified by these properties.
    Map(Box<[Box<str>]>),
}

/// A declared field of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeclField {
    /// The property name in the document: `my-field`.
    pub name: Box<str>,
    /// The name in expressions, escaped as Kubernetes does: `my__dash__field`.
    pub cel_name: Box<str>,
    /// The type of the property.
    pub decl: Arc<DeclType>,
    /// Whether the schema demands the property.
    pub required: bool,
}

/// What kind of value a type describes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DeclKind {
    /// A scalar, `dyn` (an unknown or int-or-string value), or a string that CEL sees as a timestamp, duration or bytes.
    Scalar(Type),
    /// A string that is a day (`format: date`), which CEL sees as the timestamp of its beginning.
    Date,
    /// An array.
    List {
        /// The type of every item.
        items: Arc<DeclType>,
        /// How the list is compared.
        list_type: ListType,
    },
    /// An object whose properties are all of one type.
    Map {
        /// The type of the names.
        key: Arc<DeclType>,
        /// The type of the values.
        value: Arc<DeclType>,
    },
    /// An object with declared properties.
    Object {
        /// The name messages show; `selfType0.spec` style names are the caller's choice.
        name: Box<str>,
        /// Sorted by `cel_name`.
        fields: Box<[DeclField]>,
    },
}

/// A type with its size limits from the schema.
///
/// ```
/// use std::sync::Arc;
///
/// use admit_cel::{DeclField, DeclKind, DeclType, Type};
///
/// let replicas = Arc::new(DeclType::unbounded(DeclKind::Scalar(Type::Int)));
/// let field = DeclField {
///     name: "replicas".into(),
///     cel_name: "replicas".into(),
///     decl: replicas,
///     required: true,
/// };
/// let spec = Arc::new(DeclType::unbounded(DeclKind::Object { name: "Spec".into(), fields: [field].into() }));
/// assert_eq!(spec.name(), "Spec");
/// assert_eq!(spec.field("replicas").map(|field| field.decl.name()), Some("scalar"));
/// assert!(matches!(spec.cel_type(), Type::Object(_)));
/// assert_eq!(spec.max_elements_or_unbounded(), 0);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeclType {
    /// What kind of value it is.
    pub kind: DeclKind,
    /// Whether a null in the document means an absent value.
    pub nullable: bool,
    /// The maximum number of items, entries, or characters of the JSON text; None where the schema sets no limit.
    pub max_elements: Option<u64>,
    /// The minimum number of bytes of a value's JSON text.
    pub min_serialized_size: u64,
}

impl DeclType {
    /// Creates a type that is not nullable and has no size limits.
    #[must_use]
    pub const fn unbounded(kind: DeclKind) -> Self {
        Self { kind, nullable: false, max_elements: None, min_serialized_size: 0 }
    }

    /// Returns the name in messages: an object's own, or the kind of the type.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.kind {
            DeclKind::Object { name, .. } => name,
            DeclKind::List { .. } => "list",
            DeclKind::Map { .. } => "map",
            DeclKind::Scalar(_) | DeclKind::Date => "scalar",
        }
    }

    /// The field of an object by its name in expressions.
    #[must_use]
    pub fn field(&self, cel_name: &str) -> Option<&DeclField> {
        let DeclKind::Object { fields, .. } = &self.kind else { return None };
        fields.get(field_position(fields, cel_name)?)
    }

    /// The limit of elements that cost estimates assume. Where none is set, a list or map has the greatest signed number
    /// and everything else zero, as in Kubernetes, whose map keys have none.
    #[must_use]
    pub fn max_elements_or_unbounded(&self) -> u64 {
        self.max_elements.unwrap_or(match &self.kind {
            DeclKind::List { .. } | DeclKind::Map { .. } => i64::MAX.unsigned_abs(),
            DeclKind::Scalar(_) | DeclKind::Date | DeclKind::Object { .. } => 0,
        })
    }

    /// The type the checker sees.
    #[must_use]
    pub fn cel_type(self: &Arc<Self>) -> Type {
        match &self.kind {
            DeclKind::Scalar(ty) => ty.clone(),
            DeclKind::Date => Type::Timestamp,
            DeclKind::List { items, .. } => Type::List(Arc::new(items.cel_type())),
            DeclKind::Map { key, value } => Type::Map(Arc::new(key.cel_type()), Arc::new(value.cel_type())),
            DeclKind::Object { .. } => Type::Object(Arc::clone(self)),
        }
    }
}

/// Returns the index of the field of this name; one with a reserved name is found by its escaped and its own name. INVARIANT: `fields`
/// is sorted by the names in expressions.
pub(crate) fn field_position(fields: &[DeclField], cel_name: &str) -> Option<usize> {
    let position = |name: &str| fields.binary_search_by(|field| (*field.cel_name).cmp(name)).ok();
    position(cel_name)
        .or_else(|| is_reserved(cel_name).then(|| position(&format!("__{cel_name}__"))).flatten())
}
