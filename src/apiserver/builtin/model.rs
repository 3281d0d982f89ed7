//! Holds the field tables in memory: types refer to one another by index, and strings borrow from the embedded table files.

use std::collections::HashMap;

/// All types of all packages.
#[derive(Debug, Default)]
pub struct Tables {
    pub(super) types: Vec<TypeDef>,
    pub(super) enums: Vec<EnumDef>,
    /// (group, version, kind) of the types that are objects.
    pub(super) kinds: HashMap<(&'static str, &'static str, &'static str), TypeId>,
    pub(super) by_openapi: HashMap<String, TypeId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub(super) usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EnumId(pub(super) usize);

/// The package of a type: API group, version and OpenAPI prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Package {
    /// The name by which other packages' tables refer to it: `core`.
    pub alias: &'static str,
    /// Empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    /// The prefix of its types' names in OpenAPI: `io.k8s.api.core.v1`.
    pub openapi: &'static str,
}

#[derive(Debug)]
pub struct TypeDef {
    pub package: Package,
    pub name: &'static str,
    /// Whether it is a kind, with `apiVersion` and `kind` beside its fields.
    pub object: bool,
    /// Whether server-side apply owns values of this type as a whole.
    pub atomic: bool,
    /// Whether it is a list in JSON, and in protobuf a message whose only field is the list.
    pub is_list: bool,
    /// The fields of which only one is set at a time.
    pub union: Option<Union>,
    pub description: &'static str,
    /// The fields, in the order in which the encoder writes them.
    pub fields: Vec<Field>,
}

/// Fields of which only one is set, as given by another field: `x-kubernetes-unions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Union {
    /// The field that names the one that is set; empty if there is none.
    pub discriminator: &'static str,
    pub fields: Vec<&'static str>,
}

/// A string type with a closed set of values.
#[derive(Debug)]
pub struct EnumDef {
    pub name: &'static str,
    pub values: Vec<&'static str>,
}

#[derive(Debug)]
pub struct Field {
    /// The field's number in the protobuf message.
    pub number: u32,
    /// The name in JSON; empty for an embedded type, whose fields are inlined.
    pub name: &'static str,
    pub kind: TypeRef,
    pub required: bool,
    /// Written even when it has its zero value.
    pub always_written: bool,
    /// Left out when it has its zero value, even if it is a message.
    pub omit_zero: bool,
    pub list: Option<ListType>,
    /// Whether server-side apply owns the map as a whole.
    pub atomic_map: bool,
    /// Whether server-side apply owns the members one by one although it owns other values of the type as a whole.
    pub granular_map: bool,
    pub patch: PatchStrategy,
    /// The default as JSON, published in OpenAPI and set by the server if the client set nothing.
    pub default: Option<&'static str>,
    /// The default as JSON, set by the server if the client set nothing, but not published.
    pub fill: Option<&'static str>,
    /// A value as JSON that has the same effect as an absent field, although it is never set as a default.
    pub absent: Option<&'static str>,
    pub description: &'static str,
}

/// `x-kubernetes-list-type` and `x-kubernetes-list-map-keys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListType {
    Atomic,
    Set,
    Map(Vec<&'static str>),
}

/// How strategic merge patch treats a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    pub merge: bool,
    pub retain_keys: bool,
    /// The member that identifies a list item; empty for lists of scalars.
    pub merge_key: &'static str,
    /// The strategies as OpenAPI publishes them.
    pub text: &'static str,
}

/// The named types whose values are arbitrary JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawKind {
    /// An object of any kind.
    Extension,
    /// A set of owned fields.
    Fields,
    /// Any value.
    Json,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeRef {
    String,
    Enum(EnumId),
    Int32,
    Int64,
    Float64,
    Bool,
    /// Base64 in JSON.
    Bytes,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// Any JSON.
    Raw(RawKind),
    /// A schema, or a list of them: `items` of a CRD's schema.
    SchemaOrArray(TypeId),
    /// A schema or a boolean: `additionalProperties`.
    SchemaOrBool(TypeId),
    /// A schema or a list of property names: `dependencies`.
    SchemaOrStrings(TypeId),
    Message(TypeId),
    /// An optional value, whose absence differs from zero.
    Pointer(Box<Self>),
    List(Box<Self>),
    Map(Box<Self>),
}

impl Tables {
    /// Returns the type of a served kind.
    #[must_use]
    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Option<TypeId> {
        self.kinds.get(&(group, version, kind)).copied()
    }

    /// Returns the type with an OpenAPI name such as `io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta`.
    #[must_use]
    pub fn by_openapi_name(&self, name: &str) -> Option<TypeId> {
        self.by_openapi.get(name).copied()
    }

    /// # Panics
    /// Never for ids of this table.
    #[must_use]
    pub fn get(&self, id: TypeId) -> &TypeDef {
        &self.types[id.0]
    }

    /// Returns all types.
    pub fn ids(&self) -> impl Iterator<Item = TypeId> + use<> {
        (0..self.types.len()).map(TypeId)
    }

    #[must_use]
    pub fn enumeration(&self, id: EnumId) -> &EnumDef {
        &self.enums[id.0]
    }

    /// Finds the field with the JSON name `name`, also in embedded types.
    #[must_use]
    pub fn field(&self, id: TypeId, name: &str) -> Option<&Field> {
        self.field_with_owners(id, name).map(|(_, field)| field)
    }

    /// Like [`Self::field`], with the names of the embedded types that contain the field, outermost first.
    #[must_use]
    pub fn field_with_owners(&self, id: TypeId, name: &str) -> Option<(Vec<&'static str>, &Field)> {
        self.get(id).fields.iter().find_map(|field| match &field.kind {
            TypeRef::Message(embedded) if field.name.is_empty() => {
                let (mut owners, field) = self.field_with_owners(*embedded, name)?;
                owners.insert(0, self.get(*embedded).name);
                Some((owners, field))
            }
            _ => (field.name == name && !name.is_empty()).then(|| (Vec::new(), field)),
        })
    }

    /// Returns all fields as in JSON: those of embedded types replace the embedding field.
    #[must_use]
    pub fn flat_fields(&self, id: TypeId) -> Vec<&Field> {
        let fields = &self.get(id).fields;
        let mut flat = Vec::with_capacity(fields.len());
        for field in fields {
            match &field.kind {
                TypeRef::Message(embedded) if field.name.is_empty() => {
                    flat.extend(self.flat_fields(*embedded))
                }
                _ => flat.push(field),
            }
        }
        flat
    }
}

impl TypeId {
    /// Returns the index of the type among all types.
    #[must_use]
    pub fn index(self) -> usize {
        self.0
    }
}

impl TypeDef {
    #[must_use]
    pub fn openapi_name(&self) -> String {
        format!("{}.{}", self.package.openapi, self.name)
    }
}

impl TypeRef {
    /// Returns the type behind pointers.
    #[must_use]
    pub fn pointee(&self) -> &Self {
        match self {
            Self::Pointer(inner) => inner.pointee(),
            other => other,
        }
    }

    /// Returns the message behind pointers, lists and maps, if there is one.
    #[must_use]
    pub fn message(&self) -> Option<TypeId> {
        match self {
            Self::Message(id)
            | Self::SchemaOrArray(id)
            | Self::SchemaOrBool(id)
            | Self::SchemaOrStrings(id) => Some(*id),
            Self::Pointer(inner) | Self::List(inner) | Self::Map(inner) => inner.message(),
            _ => None,
        }
    }
}
