//! Finds the fields that a rule reads. A rule that two definitions share gives the same result under both
//! if those fields have equal schemas.
//!
//! INVARIANT: the result is `None` for every rule that may use an object as a whole, where fields that it
//! does not name matter.

use std::collections::BTreeSet;

use admit_cel::escape_property;
use admit_cel::syntax::{Ast, Expr, ExprId, Literal};
use admit_policy::schema::{AdditionalProperties, Schema};

use super::view::is_open;

/// Functions that use no argument as a whole object: those on strings, numbers and booleans, and those on
/// lists that depend only on length and order.
const ON_PARTS: &[&str] = &[
    "_&&_",
    "_||_",
    "!_",
    "_<_",
    "_<=_",
    "_>_",
    "_>=_",
    "_-_",
    "_*_",
    "_/_",
    "_%_",
    "-_",
    "size",
    "startsWith",
    "endsWith",
    "contains",
    "matches",
    "lowerAscii",
    "upperAscii",
    "replace",
    "substring",
    "trim",
    "charAt",
    "split",
    "int",
    "isURL",
    "url",
    "getScheme",
    "getHost",
    "getHostname",
    "getPort",
    "getEscapedPath",
    "isIP",
    "ip",
    "isCIDR",
    "cidr",
    "quantity",
    "isQuantity",
    "isGreaterThan",
    "isLessThan",
    "compareTo",
    "duration",
    "timestamp",
    "@not_strictly_false",
    "hasValue",
];
/// Functions that return their argument.
const PASSING: &[&str] =
    &["_?_:_", "_[_]", "_[?_]", "_+_", "orValue", "or", "value", "optional.of", "optional.none"];

/// Returns the names of the fields that a rule reads, as written in expressions; `None` if it may use a
/// whole object.
pub(super) fn read_by(ast: &Ast, schemas: [&Schema; 2]) -> Option<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for id in ast.ids() {
        match ast.expr(id) {
            Expr::Literal(_) | Expr::Ident(_) | Expr::List { .. } | Expr::Comprehension(_) => {}
            Expr::Map(_) | Expr::Struct { .. } => return None,
            Expr::Select { field, .. } => drop(names.insert(field.to_string())),
            Expr::Call { function, target, args } => {
                let all: Vec<ExprId> = target.iter().chain(args).copied().collect();
                match (&**function, all.as_slice()) {
                    ("_?._", [_, field]) => drop(names.insert(text_of(ast, *field)?.to_owned())),
                    ("_[_]" | "_[?_]", [_, key]) => names.extend(text_of(ast, *key).map(str::to_owned)),
                    ("_==_" | "_!=_", [left, right]) => {
                        let parts = Parts { ast, schemas };
                        if !parts.is_part(*left) && !parts.is_part(*right) {
                            return None;
                        }
                    }
                    ("@in" | "_in_", [element, range]) => {
                        let parts = Parts { ast, schemas };
                        if !parts.is_part(*element) && !parts.is_part(*range) {
                            return None;
                        }
                    }
                    (name, _) if ON_PARTS.contains(&name) || PASSING.contains(&name) => {}
                    _ => return None,
                }
            }
        }
    }
    Some(names)
}

fn text_of(ast: &Ast, id: ExprId) -> Option<&str> {
    match ast.expr(id) {
        Expr::Literal(Literal::String(text)) => Some(text),
        _ => None,
    }
}

struct Parts<'p> {
    ast: &'p Ast,
    schemas: [&'p Schema; 2],
}

impl Parts<'_> {
    /// Reports whether a value is surely no object and contains none.
    fn is_part(&self, id: ExprId) -> bool {
        match self.ast.expr(id) {
            Expr::Literal(_) | Expr::Select { test_only: true, .. } => true,
            Expr::Select { field, .. } => self.is_scalar(field),
            Expr::List { elements, .. } => elements.iter().all(|element| self.is_part(*element)),
            Expr::Call { function, target, args } => {
                let all: Vec<ExprId> = target.iter().chain(args).copied().collect();
                match (&**function, all.as_slice()) {
                    ("_?._", [_, field]) => {
                        text_of(self.ast, *field).is_some_and(|field| self.is_scalar(field))
                    }
                    ("_?_:_", [_, yes, no]) => self.is_part(*yes) && self.is_part(*no),
                    ("orValue", [value, other]) => self.is_part(*value) && self.is_part(*other),
                    ("_[_]" | "_[?_]" | "value", [operand, ..]) => self.is_part(*operand),
                    (name, _) => ON_PARTS.contains(&name),
                }
            }
            Expr::Ident(_) | Expr::Map(_) | Expr::Struct { .. } | Expr::Comprehension(_) => false,
        }
    }

    /// Reports whether every field of this name is a scalar or a list of scalars.
    fn is_scalar(&self, name: &str) -> bool {
        let mut found = Vec::new();
        self.schemas.iter().all(|schema| named(schema, name, &mut found))
            && !found.is_empty()
            && found.into_iter().all(holds_scalars)
    }
}

fn holds_scalars(schema: &Schema) -> bool {
    let item = schema.items.as_deref().unwrap_or(schema);
    let is_open = item.preserves_unknown_fields() || item.embedded_resource;
    let is_object =
        !item.properties.is_empty() || item.additional_properties.is_some() || item.items.is_some();
    let has_type = item.schema_type.is_some() || item.int_or_string;
    let type_text = item.type_text();
    has_type && !is_open && !is_object && type_text != "object" && type_text != "array"
}

/// Collects the fields of a name; false if undeclared fields or entries of a map of non-scalars may have
/// that name.
fn named<'s>(schema: &'s Schema, name: &str, found: &mut Vec<&'s Schema>) -> bool {
    if is_open(schema) {
        return false;
    }
    if schema.additional_schema().is_some_and(|entry| !holds_scalars(entry)) {
        return false;
    }
    for (property, child) in &schema.properties {
        if is_named(property, name) {
            found.push(child);
        }
        if !named(child, name, found) {
            return false;
        }
    }
    schema.items.as_deref().is_none_or(|item| named(item, name, found))
}

/// Reports whether `name` is how expressions write a property.
fn is_named(property: &str, name: &str) -> bool {
    property == name || escape_property(property).is_some_and(|escaped| escaped == name)
}

/// Returns a schema without the fields that are not read, and without `required` entries for them.
pub(super) fn of_these(schema: &Schema, names: &BTreeSet<String>) -> Schema {
    let mut schema = schema.clone();
    keep(&mut schema, names);
    schema
}

fn keep(schema: &mut Schema, names: &BTreeSet<String>) {
    let is_read = |property: &str| names.iter().any(|name| is_named(property, name));
    let declared: Vec<Box<str>> = schema.properties.keys().cloned().collect();
    // Requirements of undeclared properties stay.
    let is_left = |name: &str| !declared.iter().any(|own| **own == *name) || is_read(name);
    schema.checks.required.retain(|name| is_left(name));
    schema.properties.retain(|property, _| is_read(property));
    schema.properties.values_mut().for_each(|child| keep(child, names));
    schema.items.as_deref_mut().into_iter().for_each(|item| keep(item, names));
    if let Some(AdditionalProperties::Schema(entry)) = &mut schema.additional_properties {
        keep(entry, names);
    }
}

#[cfg(test)]
mod tests {
    use admit_cel::{Env, Mode, Type, Version};
    use admit_policy::schema::SchemaType;

    use super::*;

    fn object(properties: &[(&str, Schema)]) -> Schema {
        let properties = properties.iter().map(|(name, schema)| ((*name).into(), schema.clone())).collect();
        Schema { schema_type: Some(SchemaType::Object), properties, ..Schema::default() }
    }

    fn scalar(schema_type: SchemaType) -> Schema {
        Schema { schema_type: Some(schema_type), ..Schema::default() }
    }

    fn list(item: Schema) -> Schema {
        Schema { items: Some(Box::new(item)), ..scalar(SchemaType::Array) }
    }

    fn read(text: &str) -> Option<Vec<String>> {
        let item = object(&[("name", scalar(SchemaType::String)), ("more", object(&[]))]);
        let schema = object(&[
            ("mode", scalar(SchemaType::String)),
            ("tags", list(scalar(SchemaType::String))),
            ("part", item.clone()),
            ("items", list(item)),
        ]);
        let env = Env::kubernetes(Version(1, 36), Mode::Stored).with_variable("self", Type::Dyn);
        let names = read_by(env.compile(text).unwrap().ast(), [&schema, &schema])?;
        Some(names.into_iter().collect())
    }

    #[test]
    fn fields_are_told_where_no_object_is_looked_at_as_a_whole() {
        let names = |all: &[&str]| Some(all.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(read("self.mode == 'a'"), names(&["mode"]));
        assert_eq!(read("has(self.part) && self.part.name == self.mode"), names(&["mode", "name", "part"]));
        assert_eq!(read("self.items.all(i, i.name in self.tags)"), names(&["items", "name", "tags"]));
        assert_eq!(read("self.items.exists_one(i, i.?name.orValue('') == 'a')"), names(&["items", "name"]));
        assert_eq!(read("size(self.items) < 3 && self.tags[0] != 'x'"), names(&["items", "tags"]));
        for whole in [
            "self.part == self.part",
            "self.items == []",
            "self.items.all(i, i != self.part)",
            "self.part in self.items",
            "self.items.exists(i, i == i)",
            "self.part.more == self.part.more",
            "self.items.map(i, i.name) == self.tags",
            "self.items.indexOf(self.part) == 0",
            "self.part['name'] == self['mode']",
            "self.other == self.thing",
            "type(self.part) == type(self.mode)",
            "(self.mode == 'a' ? self.part : self.mode) == self.part",
            "self.?part.orValue(self.mode) == self.part",
        ] {
            let read = read(whole);
            assert!(read.is_none() || whole.contains("[]") || whole.contains(".map("), "{whole}: {read:?}");
        }
    }

    #[test]
    fn a_field_of_what_is_not_declared_may_be_an_object() {
        let (mode, mut open) = (scalar(SchemaType::String), object(&[]));
        let env = Env::kubernetes(Version(1, 36), Mode::Stored).with_variable("self", Type::Dyn);
        let checked = env.compile("self.open.mode == self.part").unwrap();
        let read = |open: &Schema| {
            let schema = object(&[("mode", mode.clone()), ("open", open.clone()), ("part", object(&[]))]);
            read_by(checked.ast(), [&schema, &schema]).is_some()
        };
        assert!(read(&open));
        open.preserve_unknown_fields = Some(true);
        assert!(!read(&open));
    }

    #[test]
    fn what_is_not_read_is_left_out() {
        let mut one = object(&[("a", scalar(SchemaType::String)), ("b", scalar(SchemaType::String))]);
        let mut other = object(&[("a", scalar(SchemaType::String)), ("c", scalar(SchemaType::Integer))]);
        one.checks.required = vec!["a".into(), "b".into()];
        other.checks.required = vec!["a".into()];
        let names = BTreeSet::from(["a".to_owned()]);
        assert_eq!(of_these(&one, &names), of_these(&other, &names));
        other.checks.required.clear();
        assert_ne!(of_these(&one, &names), of_these(&other, &names));
    }
}
