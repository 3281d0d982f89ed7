//! Evaluates attributes: an operand followed by field selections and indexes.
//!
//! Once a link is optional, or the operand is one, all later links are too: an absent value ends the chain with an empty optional, and
//! the final value is wrapped again. Evaluating a link costs one; an absent optional link is free, and so is the operand of a presence
//! test.
//!
//! An optional from which an attribute starts, be it alone, is unwrapped and wrapped again as cel-go does: what it holds of a document
//! is plain JSON from then on. Its sets are lists, its timestamps strings and its nulls there; a quantity or an address cannot be had
//! back. `optionalOldSelf` makes `oldSelf` such an optional, `optMap` all others.

use crate::document::Key;
use crate::plan::{Attribute, Field, Qualifier, QualifierKey, Root};
use crate::types::{DeclKind, DeclType};
use crate::value::{EvalError, List, Map, MapNode, Opaque, Value, object_field};

use super::machine::{Machine, Outcome};
use super::watch::Watch;

/// A value that may be absent.
type Found<'a> = Result<Option<Value<'a>>, EvalError>;

impl<'a, W: Watch<'a>> Machine<'a, '_, W> {
    /// The attribute as a step of its own.
    pub(super) fn attribute(&mut self, attribute: &'a Attribute) -> Outcome<'a> {
        if let Some(outcome) = self.walked(attribute) {
            return outcome;
        }
        let outcome = self.resolve(attribute);
        if attribute.is_test || matches!(attribute.root, Root::Conditional(_)) {
            return outcome;
        }
        if let Err(error) = &outcome
            && error.is_final()
        {
            return outcome;
        }
        self.charge(1)?;
        outcome
    }

    /// The attribute without the cost of its operand.
    fn resolve(&mut self, attribute: &'a Attribute) -> Outcome<'a> {
        let root = self.root(&attribute.root);
        // The links of a conditional are those of its branches.
        let root = match attribute.root {
            Root::Conditional(_) => root,
            _ => root.and_then(|root| self.unwrapped(root)),
        };
        // A step has noted itself.
        if !matches!(attribute.root, Root::Step(_)) {
            self.watch.note(self.program, attribute.at, &root);
        }
        if attribute.qualifiers.is_empty() {
            return root;
        }
        let outcome = self.qualify(root?, attribute);
        self.watch.note(self.program, attribute.whole(), &outcome);
        outcome
    }

    fn root(&mut self, root: &'a Root) -> Outcome<'a> {
        match root {
            Root::Variable(slot) => self
                .variables
                .get(*slot)
                .unwrap_or_else(|| Err(EvalError::NoSuchAttribute(self.program.variable(*slot).into()))),
            Root::Local(local) => self.local(*local),
            Root::Undeclared(name) => Err(EvalError::NoSuchAttribute(name.clone())),
            Root::Step(step) => self.step(step),
            Root::Conditional(parts) => {
                let (condition, truthy, falsy) = &**parts;
                match self.step(condition)? {
                    Value::Bool(true) => self.resolve(truthy),
                    Value::Bool(false) => self.resolve(falsy),
                    _ => Err(EvalError::NoSuchOverload),
                }
            }
        }
    }

    /// Returns an optional with what it holds from then on, and any other value as it is.
    fn unwrapped(&self, root: Value<'a>) -> Outcome<'a> {
        match root {
            Value::Optional(Some(inner)) => inner.held().map_or(Ok(root), |held| self.present(held)),
            root => Ok(root),
        }
    }

    fn qualify(&mut self, root: Value<'a>, attribute: &'a Attribute) -> Outcome<'a> {
        let (mut value, mut is_optional) = match root {
            Value::Optional(None) => return Ok(absent(attribute)),
            Value::Optional(Some(inner)) => (inner.taken()?, true),
            value => (value, false),
        };
        let last = attribute.qualifiers.len().saturating_sub(1);
        for (at, qualifier) in attribute.qualifiers.iter().enumerate() {
            is_optional = is_optional || qualifier.is_optional;
            let is_tested = attribute.is_test && at == last;
            let found = self.select(&value, qualifier, is_optional || is_tested);
            if let Err(error) = &found
                && (error.is_final() || is_optional)
            {
                return Err(error.clone());
            }
            if is_optional {
                let Ok(Some(found)) = found else { return self.absent(&value, qualifier, attribute) };
                self.charge(1)?;
                value = found;
            } else {
                self.charge(1)?;
                match found? {
                    found if is_tested => return Ok(Value::Bool(found.is_some())),
                    Some(found) => value = found,
                    None => return Ok(Value::Null),
                }
            }
            if W::WATCHES && at != last {
                let shown = if is_optional { self.present(value) } else { Ok(value) };
                self.watch.note(self.program, qualifier.at, &shown);
            }
        }
        if attribute.is_test {
            return Ok(Value::Bool(true));
        }
        if !is_optional {
            return Ok(value);
        }
        self.present(value)
    }

    /// Returns the result of an optional chain that ends early.
    #[cold]
    fn absent(&self, value: &Value<'a>, qualifier: &'a Qualifier, attribute: &'a Attribute) -> Outcome<'a> {
        if self.program.is_strict()
            && !attribute.is_test
            && !matches!(value, Value::Map(_) | Value::List(_))
            && let QualifierKey::Field(field) = &qualifier.key
        {
            return Err(EvalError::NoSuchKey(field.name.clone()));
        }
        Ok(absent(attribute))
    }

    fn present(&self, value: Value<'a>) -> Outcome<'a> {
        let value = self.cx.arena.try_alloc(value).map_err(|_| EvalError::MemoryLimitExceeded)?;
        Ok(Value::Optional(Some(value)))
    }

    /// Evaluates a link. An absent value is `None` if the caller accepts that, else an error.
    fn select(&mut self, value: &Value<'a>, qualifier: &'a Qualifier, may_be_absent: bool) -> Found<'a> {
        match &qualifier.key {
            QualifierKey::Field(field) => {
                let found = self.field(value, field)?;
                if let (None, false, Value::Opaque(Opaque::Made(made))) = (found, may_be_absent, value) {
                    return Ok(Some(made.unset(&field.name)));
                }
                present(found, may_be_absent, || Value::String(&field.name))
            }
            QualifierKey::Constant(constant) => self.keyed(value, &constant.value(), may_be_absent),
            QualifierKey::Attribute(attribute) => {
                let key = self.resolve(attribute)?;
                self.keyed(value, &key, may_be_absent)
            }
            QualifierKey::Step(step) => {
                let key = self.step(step)?;
                self.keyed(value, &key, may_be_absent)
            }
        }
    }

    fn field(&self, value: &Value<'a>, field: &'a Field) -> Found<'a> {
        let Value::Map(map) = value else { return self.member(value, &Value::String(&field.name)) };
        match map {
            Map::Document { node, decl: None } => Ok(node.find(field.key()).map(Value::untyped)),
            Map::Document { node, decl: Some(decl) } => self.declared_field(*node, decl, field, map),
            Map::Values(_) | Map::Indexed(_) | Map::Constant(_) | Map::Host(_) => {
                map.try_get(self.cx.arena, &Value::String(&field.name))
            }
        }
    }

    /// Selects a field at its known index, if the operand has the type that the checker inferred.
    fn declared_field(
        &self,
        node: MapNode<'a>,
        decl: &'a DeclType,
        field: &'a Field,
        map: &Map<'a>,
    ) -> Found<'a> {
        if let (Some((expected, at)), DeclKind::Object { fields, .. }) = (&field.declared, &decl.kind)
            && std::ptr::eq(&raw const **expected, decl)
            && let Some(declared) = fields.get(*at)
        {
            let key = if *declared.name == *field.name {
                Key::with_hash(&declared.name, field.hash)
            } else {
                Key::new(&declared.name)
            };
            return object_field(Some(self.cx.arena), node, key, &declared.decl);
        }
        map.try_get(self.cx.arena, &Value::String(&field.name))
    }

    fn keyed(&self, value: &Value<'a>, key: &Value<'a>, may_be_absent: bool) -> Found<'a> {
        if !matches!(
            key,
            Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_)
        ) {
            return Err(EvalError::Other(format!("invalid qualifier type: {}", key.go_type()).into()));
        }
        present(self.member(value, key)?, may_be_absent, || *key).map_err(|error| match (value, error, key) {
            (Value::List(_), EvalError::NoSuchKey(_), Value::Int(index)) => {
                EvalError::IndexOutOfBounds(*index)
            }
            (Value::List(_), EvalError::NoSuchKey(key), _) => {
                EvalError::Other(format!("index out of bounds: {key}").into())
            }
            (_, error, _) => error,
        })
    }

    fn member(&self, value: &Value<'a>, key: &Value<'_>) -> Found<'a> {
        match value {
            Value::Map(map) => map.try_get(self.cx.arena, key),
            Value::List(list) => {
                let index = list_index(key)?;
                match usize::try_from(index) {
                    Ok(index) if index < list.len() => {
                        if matches!(list, List::Document { decl: Some(_), .. })
                            && !matches!(key, Value::Int(_))
                        {
                            let text = format!("unsupported index: {}", key.go_text());
                            return Err(EvalError::Other(text.into()));
                        }
                        list.try_get(self.cx.arena, index)
                    }
                    _ => Ok(None),
                }
            }
            Value::Opaque(Opaque::Empty) => Err(no_such_field(key)),
            Value::Opaque(Opaque::Made(made)) => match key {
                Value::String(name) if made.has(name) => Ok(made.get(name)),
                _ => Ok(None),
            },
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::String(_)
            | Value::Bytes(_)
            | Value::Duration(_)
            | Value::Timestamp(_)
            | Value::Type(_)
            | Value::Optional(_)
            | Value::Opaque(_) => Ok(None),
        }
    }
}

/// The error for any field of a message without fields.
fn no_such_field(key: &Value<'_>) -> EvalError {
    match key {
        Value::String(name) => EvalError::other(format!("no such field '{name}'")),
        _ => EvalError::NoSuchOverload,
    }
}

const fn absent<'a>(attribute: &Attribute) -> Value<'a> {
    if attribute.is_test { Value::Bool(false) } else { Value::Optional(None) }
}

fn present<'a, 'k>(
    found: Option<Value<'a>>,
    may_be_absent: bool,
    key: impl FnOnce() -> Value<'k>,
) -> Found<'a> {
    if found.is_none() && !may_be_absent {
        return Err(EvalError::NoSuchKey(key().go_text().into()));
    }
    Ok(found)
}

/// The position that an index names: a whole number of any type.
fn list_index(index: &Value<'_>) -> Result<i64, EvalError> {
    let whole = match index {
        Value::Int(index) => return Ok(*index),
        Value::Uint(index) => i64::try_from(*index).ok(),
        Value::Double(_) => index.whole_number().and_then(|whole| i64::try_from(whole).ok()),
        _ => {
            let ty = crate::value::runtime_type::name_of(index);
            return Err(EvalError::Other(format!("unsupported index type '{ty}' in list").into()));
        }
    };
    whole.ok_or_else(|| {
        EvalError::Other(format!("unsupported index value {} in list", index.go_text()).into())
    })
}
