//! Builds the schema of whole objects: what a definition declares, plus `apiVersion`, `kind` and metadata.

use admit_policy::GroupVersionKind;
use admit_policy::schema::{AdditionalProperties, Checks, Enumeration, Pattern, Schema, SchemaType};

/// A DNS subdomain.
pub(super) const NAME: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// A DNS label.
pub(super) const LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

fn text(pattern: Option<&str>, most: Option<i64>) -> Schema {
    let checks = Checks { pattern: pattern.map(Pattern::new), max_length: most, ..Checks::default() };
    Schema { schema_type: Some(SchemaType::String), checks: checks.into(), ..Schema::default() }
}

/// Adds what every object has to a schema. Rules of a definition see only the name of the metadata.
pub(super) fn whole(
    schema: &Schema,
    kind: &GroupVersionKind,
    is_namespaced: bool,
    all_metadata: bool,
) -> Schema {
    let mut schema = schema.clone();
    schema.schema_type = Some(SchemaType::Object);
    let mut metadata = Schema { schema_type: Some(SchemaType::Object), ..Schema::default() };
    let mut name = text(Some(NAME), Some(253));
    let declared = schema.properties.get("metadata").and_then(|metadata| metadata.properties.get("name"));
    if let Some(declared) = declared {
        name.checks.all_of.push(declared.clone());
    }
    metadata.properties.insert("name".into(), name);
    metadata.checks.required.push("name".into());
    let mut generate_name = text(None, None);
    let declared =
        schema.properties.get("metadata").and_then(|metadata| metadata.properties.get("generateName"));
    if let Some(declared) = declared {
        generate_name.checks.all_of.push(declared.clone());
    }
    metadata.properties.insert("generateName".into(), generate_name);
    if is_namespaced {
        metadata.properties.insert("namespace".into(), text(Some(LABEL), Some(63)));
        metadata.checks.required.push("namespace".into());
    }
    if all_metadata {
        metadata.properties.extend(beside_the_name());
    }
    schema.properties.insert("metadata".into(), metadata);
    types(&mut schema, kind);
    schema
}

/// Fixes `apiVersion` and `kind` of whole objects.
pub(super) fn types(schema: &mut Schema, kind: &GroupVersionKind) {
    for (property, value) in [("apiVersion", kind.api_version()), ("kind", kind.kind.clone())] {
        let enumeration = Enumeration::new(vec![value.into()]);
        let mut checks = Checks { enumeration, ..Checks::default() };
        // A definition may constrain them beyond their type.
        let declared = schema.properties.get(property).map(|declared| (*declared.checks).clone());
        let said = declared.filter(|said| *said != Checks::default());
        checks.all_of.extend(said.map(|said| Schema { checks: said.into(), ..Schema::default() }));
        let only =
            Schema { schema_type: Some(SchemaType::String), checks: checks.into(), ..Schema::default() };
        schema.properties.insert(property.into(), only);
    }
    for property in ["apiVersion", "kind", "metadata"] {
        if !schema.checks.required.iter().any(|known| **known == *property) {
            schema.checks.required.push(property.into());
        }
    }
}

/// Returns the metadata fields beside name and namespace, some of which are optional.
fn beside_the_name() -> Vec<(Box<str>, Schema)> {
    let typed = |schema_type| Schema { schema_type: Some(schema_type), ..Schema::default() };
    let of_texts = || {
        let entries = AdditionalProperties::Schema(Box::new(text(None, None)));
        Schema { additional_properties: Some(entries), ..typed(SchemaType::Object) }
    };
    let list = |item: Schema| Schema { items: Some(Box::new(item)), ..typed(SchemaType::Array) };
    let mut owner = typed(SchemaType::Object);
    for name in ["apiVersion", "kind", "name", "uid"] {
        owner.properties.insert(name.into(), text(None, None));
        owner.checks.required.push(name.into());
    }
    for name in ["controller", "blockOwnerDeletion"] {
        owner.properties.insert(name.into(), typed(SchemaType::Boolean));
    }
    let texts = ["uid", "creationTimestamp", "deletionTimestamp", "generateName", "resourceVersion"];
    let numbers = ["generation", "deletionGracePeriodSeconds"];
    let maps = ["labels", "annotations"];
    let lists = [("finalizers", list(text(None, None))), ("ownerReferences", list(owner))];
    let named = |name: &str, schema: Schema| (Box::from(name), schema);
    texts
        .map(|name| named(name, text(None, None)))
        .into_iter()
        .chain(numbers.map(|name| named(name, typed(SchemaType::Integer))))
        .chain(maps.map(|name| named(name, of_texts())))
        .chain(lists.map(|(name, schema)| named(name, schema)))
        .collect()
}
