//! Builds `components.schemas`: built-in kinds from the field tables, custom kinds from their CRD's schema with the
//! metadata that every object has.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::custom::{
    API_VERSION, KIND, OBJECT_METADATA, custom_name, custom_schema, extensions, selectable_fields,
};
use super::operations::{META, capital, gvk, reference};
use super::registered::{EXTENSION, Told};
use crate::builtin::{Field, ListType, RawKind, TypeDef, TypeId, TypeRef, Union, tables};
use crate::resources::ResourceInfo;

const LIST_METADATA: &str = "Standard list metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/// The schemas that a document needs, collected while its paths are written.
#[derive(Debug, Default)]
pub(super) struct Schemas {
    written: Map<String, Value>,
    pending: BTreeSet<TypeId>,
    /// The versions of kinds that are registered everywhere.
    told: Told,
}

impl Schemas {
    /// Returns the name of a resource's object schema, and adds that schema with those of the bodies that its verbs take.
    pub(super) fn object(&mut self, row: &ResourceInfo) -> String {
        let serves = |verb: &str| row.verbs.iter().any(|served| served == verb);
        if serves("delete") {
            self.need(&format!("{META}.DeleteOptions"));
        }
        if serves("patch") {
            let patch = json!({"description": "Patch is provided to give a concrete name and type to the Kubernetes PATCH request body.", "type": "object"});
            self.written.insert(format!("{META}.Patch"), patch);
        }
        self.told =
            if row.builtin { Told::Own(row.group.clone(), row.version.clone()) } else { Told::Shared };
        if let Some(id) = tables().kind(&row.group, &row.version, &row.kind).filter(|_| row.builtin) {
            self.pending.insert(id);
            return tables().get(id).openapi_name();
        }
        let name = custom_name(row, &row.kind);
        self.need(&format!("{META}.ObjectMeta"));
        let mut schema = custom_schema(row);
        schema.extend(extensions(row));
        self.written.insert(name.clone(), Value::Object(schema));
        name
    }

    /// Returns the name of a resource's list schema, and adds that schema.
    pub(super) fn list(&mut self, row: &ResourceInfo) -> String {
        self.need(&format!("{META}.ListMeta"));
        let object = self.object(row);
        let name = match object.strip_suffix(&row.kind) {
            Some(prefix) => format!("{prefix}{}", row.list_kind),
            None => custom_name(row, &row.list_kind),
        };
        let mut metadata =
            json!({"description": LIST_METADATA, "allOf": [reference(&format!("{META}.ListMeta"))]});
        if row.builtin {
            metadata["default"] = json!({});
        }
        let mut schema = json!({
            "description": format!("{} is a list of {}", row.list_kind, row.kind),
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": {"description": API_VERSION, "type": "string"},
                "items": {
                    "description": format!("List of {}. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md", row.plural),
                    "type": "array",
                    "items": reference(&object),
                },
                "kind": {"description": KIND, "type": "string"},
                "metadata": metadata,
            },
            "x-kubernetes-group-version-kind": [gvk(&row.group, &row.version, &row.list_kind)],
        });
        if let Some((extension, fields)) = selectable_fields(row) {
            schema[extension] = fields;
        }
        self.written.insert(name.clone(), schema);
        name
    }

    pub(super) fn status(&mut self) -> &'static str {
        self.need(&format!("{META}.Status"));
        "io.k8s.apimachinery.pkg.apis.meta.v1.Status"
    }

    pub(super) fn watch_event(&mut self) -> &'static str {
        self.need(&format!("{META}.WatchEvent"));
        "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent"
    }

    /// Returns the name of the schema of a kind that is only a request or response body. Kinds of the core group have empty group
    /// and version.
    pub(super) fn of_kind(&mut self, group: &str, version: &str, kind: &str) -> String {
        let version = if group.is_empty() { "v1" } else { version };
        match tables().kind(group, version, kind) {
            Some(id) => {
                self.pending.insert(id);
                tables().get(id).openapi_name()
            }
            None => String::new(),
        }
    }

    /// Returns the schemas for a document without resources, by names such as `io.k8s.apimachinery.pkg.version.Info`.
    pub(super) fn of_names(names: &[String]) -> Map<String, Value> {
        let mut schemas = Self::default();
        for name in names {
            schemas.need(name);
        }
        schemas.finish()
    }

    /// Returns all schemas, including those that they refer to.
    pub(super) fn finish(mut self) -> Map<String, Value> {
        while let Some(id) = self.pending.pop_first() {
            let name = tables().get(id).openapi_name();
            if !self.written.contains_key(&name) {
                let schema = self.message(id);
                self.written.insert(name, schema);
            }
        }
        self.written
    }

    pub(super) fn need(&mut self, name: &str) {
        self.pending.extend(tables().by_openapi_name(name));
    }

    fn message(&mut self, id: TypeId) -> Value {
        let definition = tables().get(id);
        let mut properties: Vec<(String, Value)> = Vec::new();
        if definition.object {
            properties.push(("apiVersion".into(), json!({"description": API_VERSION, "type": "string"})));
            properties.push(("kind".into(), json!({"description": KIND, "type": "string"})));
        }
        let mut required: Vec<&str> = Vec::new();
        for field in tables().flat_fields(id) {
            if field.required {
                required.push(field.name);
            }
            properties.push((field.name.to_owned(), self.field(field)));
        }
        properties.sort_by(|(left, _), (right, _)| left.cmp(right));
        let mut schema = Map::new();
        if !definition.description.is_empty() {
            schema.insert("description".into(), definition.description.into());
        }
        schema.insert("type".into(), "object".into());
        if !required.is_empty() {
            schema.insert("required".into(), required.into());
        }
        if !properties.is_empty() {
            schema.insert("properties".into(), Value::Object(properties.into_iter().collect()));
        }
        if definition.atomic {
            schema.insert("x-kubernetes-map-type".into(), "atomic".into());
        }
        if let Some(union) = &definition.union {
            schema.insert("x-kubernetes-unions".into(), json!([published_union(union)]));
        }
        if let Some(kinds) = self.registered_as(definition) {
            schema.insert(EXTENSION.into(), kinds);
        }
        Value::Object(schema)
    }

    /// Returns the group, version and kind of a type; options and events are registered in every version.
    fn registered_as(&self, definition: &TypeDef) -> Option<Value> {
        let package = definition.package;
        self.told.of(definition.name).or_else(|| {
            let group = if package.openapi == META { "" } else { package.group };
            definition.object.then(|| json!([gvk(group, package.version, definition.name)]))
        })
    }

    fn field(&mut self, field: &Field) -> Value {
        let mut schema = Map::new();
        if field.name == "metadata" && field.description.is_empty() {
            schema.insert("description".into(), OBJECT_METADATA.into());
        } else if !field.description.is_empty() {
            schema.insert("description".into(), field.description.into());
        }
        schema.append(&mut self.type_schema(&field.kind, true));
        let published: Option<Value> = match (&field.kind, field.default) {
            (_, Some(default)) => serde_json::from_str(default).ok(),
            (TypeRef::Message(id), None) if !tables().get(*id).is_list => Some(json!({})),
            _ if field.omit_zero || (!field.required && !field.always_written) => None,
            (TypeRef::String | TypeRef::Enum(_), None) => Some(json!("")),
            (TypeRef::Int32 | TypeRef::Int64, None) => Some(json!(0)),
            (TypeRef::Bool, None) => Some(json!(false)),
            _ => None,
        };
        if let Some(default) = published {
            schema.insert("default".into(), default);
        }
        match &field.list {
            Some(ListType::Atomic) => drop(schema.insert("x-kubernetes-list-type".into(), "atomic".into())),
            Some(ListType::Set) => drop(schema.insert("x-kubernetes-list-type".into(), "set".into())),
            Some(ListType::Map(keys)) => {
                schema.insert("x-kubernetes-list-map-keys".into(), keys.clone().into());
                schema.insert("x-kubernetes-list-type".into(), "map".into());
            }
            None => {}
        }
        if field.atomic_map || field.granular_map {
            let kind = if field.atomic_map { "atomic" } else { "granular" };
            schema.insert("x-kubernetes-map-type".into(), kind.into());
        }
        if !field.patch.merge_key.is_empty() {
            schema.insert("x-kubernetes-patch-merge-key".into(), field.patch.merge_key.into());
        }
        if !field.patch.text.is_empty() {
            schema.insert("x-kubernetes-patch-strategy".into(), field.patch.text.into());
        }
        Value::Object(schema)
    }

    /// Builds the schema of a type. With `beside_others` a reference is wrapped in `allOf`, since OpenAPI ignores members beside `$ref`.
    fn type_schema(&mut self, kind: &TypeRef, beside_others: bool) -> Map<String, Value> {
        let simple = |kind: &str, format: &str| {
            let mut schema = Map::new();
            schema.insert("type".into(), kind.into());
            if !format.is_empty() {
                schema.insert("format".into(), format.into());
            }
            schema
        };
        let name = match kind {
            TypeRef::Pointer(inner) => return self.type_schema(inner, beside_others),
            TypeRef::String => return simple("string", ""),
            TypeRef::Bytes => return simple("string", "byte"),
            TypeRef::Int32 => return simple("integer", "int32"),
            TypeRef::Int64 => return simple("integer", "int64"),
            TypeRef::Float64 => return simple("number", "double"),
            TypeRef::Bool => return simple("boolean", ""),
            TypeRef::Enum(id) => {
                let mut schema = simple("string", "");
                schema.insert("enum".into(), tables().enumeration(*id).values.clone().into());
                return schema;
            }
            TypeRef::List(inner) => {
                let mut schema = simple("array", "");
                schema.insert("items".into(), Value::Object(self.type_schema(inner, false)));
                return schema;
            }
            TypeRef::Map(inner) => {
                let mut schema = simple("object", "");
                schema.insert("additionalProperties".into(), Value::Object(self.type_schema(inner, false)));
                return schema;
            }
            TypeRef::Message(id) if tables().get(*id).is_list => {
                let items = tables().flat_fields(*id).first().map(|field| field.kind.clone());
                return items.map(|items| self.type_schema(&items, false)).unwrap_or_default();
            }
            TypeRef::Message(id) => {
                self.pending.insert(*id);
                tables().get(*id).openapi_name()
            }
            other => self.special(other),
        };
        let mut schema = Map::new();
        if beside_others {
            schema.insert("allOf".into(), json!([reference(&name)]));
        } else {
            return reference(&name).as_object().cloned().unwrap_or_default();
        }
        schema
    }

    /// Adds the schema of a type with its own JSON form, and returns its name.
    fn special(&mut self, kind: &TypeRef) -> String {
        const EXTENSIONS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";
        let (name, schema) = match kind {
            TypeRef::Time => (
                format!("{META}.Time"),
                json!({"description": "An instant, to the second.", "type": "string", "format": "date-time"}),
            ),
            TypeRef::MicroTime => (
                format!("{META}.MicroTime"),
                json!({"description": "An instant, to the microsecond.", "type": "string", "format": "date-time"}),
            ),
            TypeRef::Quantity => (
                "io.k8s.apimachinery.pkg.api.resource.Quantity".to_owned(),
                json!({"description": "A number with an optional decimal (m, k, M, G) or binary (Ki, Mi, Gi) suffix.",
                    "oneOf": [{"type": "string"}, {"type": "number"}]}),
            ),
            TypeRef::IntOrString => (
                "io.k8s.apimachinery.pkg.util.intstr.IntOrString".to_owned(),
                json!({"description": "A whole number or a string.", "format": "int-or-string",
                    "oneOf": [{"type": "integer"}, {"type": "string"}]}),
            ),
            TypeRef::SchemaOrArray(id) => {
                self.pending.insert(*id);
                (
                    format!("{EXTENSIONS}.JSONSchemaPropsOrArray"),
                    json!({"description": "A schema, or a list of schemas."}),
                )
            }
            TypeRef::SchemaOrBool(id) => {
                self.pending.insert(*id);
                (
                    format!("{EXTENSIONS}.JSONSchemaPropsOrBool"),
                    json!({"description": "A schema, or whether anything is allowed."}),
                )
            }
            TypeRef::SchemaOrStrings(id) => {
                self.pending.insert(*id);
                (
                    format!("{EXTENSIONS}.JSONSchemaPropsOrStringArray"),
                    json!({"description": "A schema, or a list of property names."}),
                )
            }
            TypeRef::Raw(RawKind::Fields) => (
                format!("{META}.FieldsV1"),
                json!({"description": "A set of fields, as a tree of `f:NAME`, `k:KEYS`, `v:VALUE` and `i:INDEX`.", "type": "object"}),
            ),
            TypeRef::Raw(RawKind::Json) => {
                (format!("{EXTENSIONS}.JSON"), json!({"description": "Any JSON value."}))
            }
            _ => (
                "io.k8s.apimachinery.pkg.runtime.RawExtension".to_owned(),
                json!({"description": "An object of any kind.", "type": "object"}),
            ),
        };
        self.written.insert(name.clone(), schema);
        name
    }
}

/// Builds the extension that maps union fields to discriminator values, which are the capitalized field names.
fn published_union(union: &Union) -> Value {
    let fields = union.fields.iter().map(|field| ((*field).to_owned(), capital(field).into()));
    let mut published = Map::new();
    if !union.discriminator.is_empty() {
        published.insert("discriminator".into(), union.discriminator.into());
    }
    published.insert("fields-to-discriminateBy".into(), Value::Object(fields.collect()));
    Value::Object(published)
}
