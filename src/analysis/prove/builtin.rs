//! Builds a schema for a built-in kind from the Go types of its fields, in two variants: what every object
//! satisfies, and what an admissible object likely satisfies.
//!
//! INVARIANT: the certain variant allows every object that a server admits. Types, and which fields Go's
//! encoder always writes, are certain; enumerations, names and list map keys are validated for some fields
//! and not for others, so they are only in the likely variant.

use admit_policy::schema::{
    AdditionalProperties, Checks, Enumeration, ListType, Pattern, Schema, SchemaType,
};
use admit_policy::{Catalogue, FieldShape, FieldType, NameRule, Presence, ServedKind};
use serde_json::{Value, json};

use super::whole::{LABEL, NAME, types};

/// Matches quantities as a server writes them: canonical, without a fraction.
const QUANTITY: &str = "^-?[0-9]+([numkMGTPE]|[KMGTPE]i|e-?[0-9]{1,2})?$";
/// Matches positive whole quantities, large enough that a part of them can be reserved.
const LIKELY_QUANTITY: &str = "^[1-9][0-9]{0,2}$";

/// Reports whether a schema is that of quantities, where different strings may mean the same value.
pub(super) fn is_quantity(schema: &Schema) -> bool {
    let pattern = schema.checks.pattern.as_ref().map(Pattern::text);
    pattern == Some(QUANTITY) || pattern == Some(LIKELY_QUANTITY)
}

/// How certain it is that a server enforces a constraint.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Sureness {
    Certain,
    Likely,
}

/// Builds the schema of whole objects of a built-in kind.
pub(super) fn schema(catalogue: &Catalogue, served: &ServedKind, sureness: Sureness) -> Schema {
    let mut made = Maker { catalogue, sureness, around: Vec::new() }.shape(served.shape);
    types(&mut made, &served.kind);
    let Some(metadata) = made.properties.get_mut("metadata") else { return made };
    // With `generateName` the server has set the name before it asks policies.
    let mut name = named(served.name);
    if sureness == Sureness::Likely {
        name.checks.pattern = Some(Pattern::new(NAME));
        name.checks.max_length = Some(63);
    }
    metadata.properties.insert("name".into(), name);
    metadata.checks.required.push("name".into());
    if served.namespaced {
        let mut namespace = typed(SchemaType::String, Checks { max_length: Some(63), ..Checks::default() });
        namespace.checks.pattern = Some(Pattern::new(LABEL));
        metadata.properties.insert("namespace".into(), namespace);
        metadata.checks.required.push("namespace".into());
    } else {
        metadata.properties.shift_remove("namespace");
    }
    made
}

/// Returns the schema of the names that a rule allows.
fn named(rule: Option<NameRule>) -> Schema {
    const SEGMENT: &str = "^([^./%][^/%]*|\\.[^./%][^/%]*|\\.\\.[^/%]+)$";
    let (pattern, most) = match rule {
        Some(NameRule::Subdomain) => (Some(NAME), Some(253)),
        Some(NameRule::Label | NameRule::Label1035) => (Some(LABEL), Some(63)),
        Some(NameRule::PathSegment) => (Some(SEGMENT), None),
        None => (None, None),
    };
    let pattern = pattern.map(Pattern::new);
    typed(SchemaType::String, Checks { min_length: Some(1), max_length: most, pattern, ..Checks::default() })
}

struct Maker<'c> {
    catalogue: &'c Catalogue,
    sureness: Sureness,
    /// The types that enclose the current one, to stop at recursive types.
    around: Vec<usize>,
}

impl Maker<'_> {
    fn shape(&mut self, index: usize) -> Schema {
        let Some(shape) = self.catalogue.shape(index).filter(|_| !self.around.contains(&index)) else {
            return untyped();
        };
        self.around.push(index);
        let mut made = Schema { schema_type: Some(SchemaType::Object), ..Schema::default() };
        let mut checks = Checks::default();
        for field in &shape.fields {
            if field.is_certain || matches!(field.presence, Presence::Always | Presence::MaybeNull) {
                checks.required.push(field.name.as_str().into());
            }
            made.properties.insert(field.name.as_str().into(), self.field(field));
        }
        self.around.pop();
        if self.sureness == Sureness::Likely {
            checks.any_of = one_of_them(&shape.fields);
        }
        made.checks = checks.into();
        made
    }

    fn field(&mut self, field: &FieldShape) -> Schema {
        let mut made = self.value(&field.of);
        made.nullable = field.presence == Presence::MaybeNull && !field.is_certain;
        if field.is_closed
            && let FieldType::OneOf(members) = &field.of
        {
            made.checks.enumeration = Enumeration::new(members.iter().map(|member| json!(member)).collect());
        }
        if let Some((least, most)) = field.bounds {
            let least = least.max(made.checks.minimum.map_or(i64::MIN, |_| 0));
            // The limits of the integer type itself are no constraint.
            made.checks.minimum = small(least);
            made.checks.maximum = small(most);
        }
        let is_not_zero = field.presence == Presence::WhereNotZero || field.is_certain;
        if is_not_zero && !field.may_be_absent {
            not_zero(&field.of, &mut made.checks);
        }
        if self.sureness == Sureness::Likely && !field.keys.is_empty() {
            made.list_type = Some(ListType::Map);
            made.list_map_keys = field.keys.iter().map(|key| key.as_str().into()).collect();
        }
        made
    }

    fn value(&mut self, of: &FieldType) -> Schema {
        let is_likely = self.sureness == Sureness::Likely;
        match of {
            FieldType::Text => typed(SchemaType::String, Checks::default()),
            FieldType::OneOf(members) => {
                let members = members.iter().map(|member| json!(member)).collect();
                let enumeration = if is_likely { Enumeration::new(members) } else { Enumeration::default() };
                typed(SchemaType::String, Checks { enumeration, ..Checks::default() })
            }
            FieldType::Int | FieldType::Int32 => {
                let format = (*of == FieldType::Int32).then(|| "int32".into());
                let minimum = is_likely.then_some(0.0);
                typed(SchemaType::Integer, Checks { format, minimum, ..Checks::default() })
            }
            FieldType::Float => typed(SchemaType::Number, Checks::default()),
            FieldType::Bool => typed(SchemaType::Boolean, Checks::default()),
            FieldType::Quantity => {
                let pattern = Some(Pattern::new(if is_likely { LIKELY_QUANTITY } else { QUANTITY }));
                typed(SchemaType::String, Checks { pattern, ..Checks::default() })
            }
            FieldType::IntOrText => Schema { int_or_string: true, ..Schema::default() },
            FieldType::Time => typed(SchemaType::String, of_format("date-time")),
            FieldType::Bytes if is_likely => typed(SchemaType::String, of_format("byte")),
            FieldType::Bytes => typed(SchemaType::String, Checks::default()),
            FieldType::Other => untyped(),
            FieldType::Shape(index) => self.shape(*index),
            FieldType::List(item) => {
                let items = Some(Box::new(self.item(item)));
                Schema { items, ..typed(SchemaType::Array, Checks::default()) }
            }
            FieldType::Map(entry) => {
                let entry = AdditionalProperties::Schema(Box::new(self.item(entry)));
                Schema { additional_properties: Some(entry), ..typed(SchemaType::Object, Checks::default()) }
            }
        }
    }

    /// Returns the schema of a list item or map value; an unset one is null.
    fn item(&mut self, of: &FieldType) -> Schema {
        let mut made = self.value(of);
        made.nullable =
            matches!(of, FieldType::Bytes | FieldType::List(_) | FieldType::Map(_) | FieldType::Time);
        made
    }
}

/// Converts a bound to the schema's number type; `None` if it would be rounded.
fn small(bound: i64) -> Option<f64> {
    i32::try_from(bound).ok().map(f64::from)
}

/// Requires one of the fields if all but the names are pointers to structs, as in the sources of a volume.
fn one_of_them(fields: &[FieldShape]) -> Vec<Schema> {
    const FEW: usize = 3;
    let is_one = |field: &FieldShape| field.may_be_absent && matches!(field.of, FieldType::Shape(_));
    let (ones, others): (Vec<_>, Vec<_>) = fields.iter().partition(|field| is_one(field));
    if ones.len() < FEW || others.iter().any(|field| field.of != FieldType::Text) {
        return Vec::new();
    }
    let set = |field: &FieldShape| {
        let checks = Checks { required: vec![field.name.as_str().into()], ..Checks::default() };
        Schema { checks: checks.into(), ..Schema::default() }
    };
    ones.into_iter().map(set).collect()
}

/// Requires that a value is not the zero value of its type.
fn not_zero(of: &FieldType, checks: &mut Checks) {
    let but = |value: Value| {
        let checks = Checks { enumeration: Enumeration::new(vec![value]), ..Checks::default() };
        Some(Box::new(Schema { checks: checks.into(), ..Schema::default() }))
    };
    match of {
        FieldType::Text | FieldType::OneOf(_) | FieldType::Bytes => checks.min_length = Some(1),
        FieldType::Bool => checks.enumeration = Enumeration::new(vec![json!(true)]),
        FieldType::Int | FieldType::Int32 => checks.not = but(json!(0)),
        FieldType::List(_) => checks.min_items = Some(1),
        FieldType::Map(_) => checks.min_properties = Some(1),
        FieldType::Float
        | FieldType::Quantity
        | FieldType::IntOrText
        | FieldType::Time
        | FieldType::Other
        | FieldType::Shape(_) => {}
    }
}

fn of_format(format: &str) -> Checks {
    Checks { format: Some(format.into()), ..Checks::default() }
}

fn typed(schema_type: SchemaType, checks: Checks) -> Schema {
    Schema { schema_type: Some(schema_type), checks: checks.into(), ..Schema::default() }
}

/// Returns a schema that allows any value.
fn untyped() -> Schema {
    Schema { preserve_unknown_fields: Some(true), ..Schema::default() }
}

/// Merges an object that a query asks for into the smallest object that a server admits.
pub(super) fn completed(smallest: &Value, asked: &Value) -> Value {
    match (smallest, asked) {
        (Value::Object(smallest), Value::Object(asked)) => {
            let mut made = smallest.clone();
            for (name, value) in asked {
                let own = smallest.get(name).map_or_else(|| value.clone(), |base| completed(base, value));
                made.insert(name.clone(), own);
            }
            Value::Object(made)
        }
        (Value::Array(smallest), Value::Array(asked)) => {
            let item = |(at, asked): (usize, &Value)| {
                let Some(base) = smallest.get(at).or_else(|| smallest.last()) else { return asked.clone() };
                let mut made = completed(base, asked);
                // Names identify the items, so each gets one.
                if let (Some(Value::String(name)), None) = (made.get_mut("name"), asked.get("name"))
                    && at > 0
                {
                    name.push_str(&at.to_string());
                }
                made
            };
            Value::Array(asked.iter().enumerate().map(item).collect())
        }
        (smallest, Value::Null) => smallest.clone(),
        (_, asked) => asked.clone(),
    }
}
