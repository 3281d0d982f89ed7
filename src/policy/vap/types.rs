//! Declares the types of the variables of policies: `request`, `namespaceObject`, `variables`.
//!
//! The values themselves are plain documents; `object`, `oldObject` and `params` have no declared type.

use std::sync::Arc;

use admit_cel::{DeclField, DeclKind, DeclType, ListType, Type};

/// `kubernetes.AdmissionRequest`.
pub(super) fn request() -> Type {
    let kind = || object("kubernetes.GroupVersionKind", string_fields(["group", "version", "kind"]));
    let resource =
        || object("kubernetes.GroupVersionResource", string_fields(["group", "version", "resource"]));
    let user = object(
        "kubernetes.UserInfo",
        vec![
            field("username", scalar(Type::String)),
            field("uid", scalar(Type::String)),
            field("groups", list(scalar(Type::String))),
            field("extra", map(list(scalar(Type::String)))),
        ],
    );
    let mut fields = string_fields(["subResource", "requestSubResource", "name", "namespace", "operation"]);
    fields.extend([
        field("kind", kind()),
        field("resource", resource()),
        field("requestKind", kind()),
        field("requestResource", resource()),
        field("userInfo", user),
        field("dryRun", scalar(Type::Bool)),
        field("options", scalar(Type::Dyn)),
    ]);
    Type::Object(Arc::new(object("kubernetes.AdmissionRequest", fields)))
}

/// `kubernetes.Namespace`, with the fields that policies may see.
pub(super) fn namespace() -> Type {
    let mut metadata = string_fields(["name", "generateName", "namespace", "UID", "resourceVersion"]);
    metadata.extend([
        field("labels", map(scalar(Type::String))),
        field("annotations", map(scalar(Type::String))),
        field("creationTimestamp", scalar(Type::Timestamp)),
        field("deletionGracePeriodSeconds", scalar(Type::Int)),
        field("deletionTimestamp", scalar(Type::Timestamp)),
        field("generation", scalar(Type::Int)),
        field("finalizers", list(scalar(Type::String))),
    ]);
    let mut condition = string_fields(["status", "type", "message", "reason"]);
    condition.push(field("lastTransitionTime", scalar(Type::Timestamp)));
    let conditions = list(object("kubernetes.NamespaceCondition", condition));
    let status = vec![field("conditions", conditions), field("phase", scalar(Type::String))];
    let spec = vec![field("finalizers", list(scalar(Type::String)))];
    Type::Object(Arc::new(object(
        "kubernetes.Namespace",
        vec![
            field("metadata", object("kubernetes.NamespaceMetadata", metadata)),
            field("spec", object("kubernetes.NamespaceSpec", spec)),
            field("status", object("kubernetes.NamespaceStatus", status)),
        ],
    )))
}

/// The type of a custom resource in which `metadata` has all its fields, as in the schema that a server publishes.
pub(crate) fn with_object_meta(decl: &DeclType) -> DeclType {
    let mut decl = decl.clone();
    if let DeclKind::Object { fields, .. } = &mut decl.kind
        && let Some(metadata) = fields.iter_mut().find(|field| &*field.name == "metadata")
    {
        metadata.decl = Arc::new(object_meta());
    }
    decl
}

fn object_meta() -> DeclType {
    let mut owner = string_fields(["apiVersion", "kind", "name", "uid"]);
    owner.extend(["blockOwnerDeletion", "controller"].map(|name| field(name, scalar(Type::Bool))));
    let mut manager = string_fields(["apiVersion", "fieldsType", "manager", "operation", "subresource"]);
    manager.push(field("time", scalar(Type::Timestamp)));
    manager.push(field("fieldsV1", object("FieldsV1", Vec::new())));
    let mut fields =
        string_fields(["name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"]);
    fields.extend([
        field("labels", map(scalar(Type::String))),
        field("annotations", map(scalar(Type::String))),
        field("finalizers", list(scalar(Type::String))),
        field("generation", scalar(Type::Int)),
        field("creationTimestamp", scalar(Type::Timestamp)),
        field("deletionTimestamp", scalar(Type::Timestamp)),
        field("deletionGracePeriodSeconds", scalar(Type::Int)),
        field("ownerReferences", list(object("OwnerReference", owner))),
        field("managedFields", list(object("ManagedFieldsEntry", manager))),
    ]);
    object("ObjectMeta", fields)
}

/// The variables declared so far: the fields of `kubernetes.variables`, in the order of their names.
#[derive(Clone, Debug, Default)]
pub(super) struct Variables {
    fields: Vec<DeclField>,
}

impl Variables {
    /// Declares one more; of two of one name the later counts.
    pub(super) fn declare(&mut self, name: &str, ty: &Type) {
        let declared = field(name, declared_as(ty));
        let place = self.fields.binary_search_by(|known| (*known.cel_name).cmp(name));
        let at = place.unwrap_or_else(|at| at);
        self.fields.splice(at..at.saturating_add(usize::from(place.is_ok())), [declared]);
    }

    /// `kubernetes.variables`.
    pub(super) fn all(&self) -> Type {
        Type::Object(Arc::new(object("kubernetes.variables", self.fields.clone())))
    }
}

/// Returns the declaration of a variable of type `ty`: scalars, lists and maps keep their types, everything else is dynamic.
fn declared_as(ty: &Type) -> DeclType {
    match ty {
        Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => scalar(ty.clone()),
        Type::List(items) => list(declared_as(items)),
        Type::Map(key, value) => DeclType {
            kind: DeclKind::Map { key: Arc::new(declared_as(key)), value: Arc::new(declared_as(value)) },
            ..scalar(Type::Dyn)
        },
        Type::Dyn
        | Type::Any
        | Type::Error
        | Type::Type(_)
        | Type::Optional(_)
        | Type::Wrapper(_)
        | Type::Opaque(_)
        | Type::Abstract(_)
        | Type::Object(_)
        | Type::Param(_)
        | Type::Var(_) => scalar(Type::Dyn),
    }
}

fn scalar(ty: Type) -> DeclType {
    DeclType { kind: DeclKind::Scalar(ty), nullable: false, max_elements: None, min_serialized_size: 0 }
}

fn list(items: DeclType) -> DeclType {
    DeclType {
        kind: DeclKind::List { items: Arc::new(items), list_type: ListType::Atomic },
        ..scalar(Type::Dyn)
    }
}

/// A map with string keys.
fn map(value: DeclType) -> DeclType {
    DeclType {
        kind: DeclKind::Map { key: Arc::new(scalar(Type::String)), value: Arc::new(value) },
        ..scalar(Type::Dyn)
    }
}

fn object(name: &str, mut fields: Vec<DeclField>) -> DeclType {
    fields.sort_by(|a, b| a.cel_name.cmp(&b.cel_name));
    DeclType { kind: DeclKind::Object { name: name.into(), fields: fields.into() }, ..scalar(Type::Dyn) }
}

fn string_fields<const N: usize>(names: [&str; N]) -> Vec<DeclField> {
    names.map(|name| field(name, scalar(Type::String))).into()
}

fn field(name: &str, decl: DeclType) -> DeclField {
    DeclField { name: name.into(), cel_name: name.into(), decl: Arc::new(decl), required: true }
}
