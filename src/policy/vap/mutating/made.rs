//! Converts the value of a mutation's expression to JSON: the object of an `ApplyConfiguration`, or the value of a patch operation. The
//! two convert differently, as in apiserver `pkg/cel/mutation`.

use std::cell::Cell;

use admit_apimachinery::go::quote;
use admit_apimachinery::weight;
use admit_cel::{EvalError, Made, Map, Opaque, Value, runtime_type};
use bumpalo::Bump;
use serde_json::{Number, Value as Json};

use crate::schema::numeric;

/// The greatest integer up to which a double is exact; greater ones become strings in the JSON of a value.
const MAX_EXACT: u64 = (1 << 53) - 1;

/// The memory that the results of all mutations of a request may take: as much as the values of any text. An expression can repeat a
/// value for each item of a list, and pays only for the items: with an object of 3 MiB, `object.items.map(i, JSONPatch{…, value:
/// object})` adds as much for each item. A server stores at most 1.5 MiB.
const MAX_MADE: usize = weight::FREE;

/// Why the result of an expression is not a valid object or patch operation.
#[derive(Debug, thiserror::Error)]
pub(super) enum MadeError {
    /// Types are not named after the fields that hold them.
    #[error("type mismatch: {0}")]
    Misnamed(String),
    /// The type of an invalid item among operations.
    #[error(
        "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch, got element of {0}"
    )]
    NoOperation(String),
    #[error("error applying patch: failed to convert patch object to typed object: {0}")]
    Object(#[source] ConversionError),
    #[error("JSONPath valueExpression evaluated to a type that could not marshal to JSON: {0}")]
    Value(#[source] ConversionError),
    /// A string of an operation is invalid.
    #[error(transparent)]
    Text(ConversionError),
}

/// Why a value cannot be converted to JSON.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConversionError {
    #[error("the values that mutations make of a request would take more than {MAX_MADE} bytes of memory")]
    TooLarge,
    #[error("invalid number {0}")]
    InvalidNumber(f64),
    /// The key as it is shown, and its type.
    #[error("map key {0} is of type {1}, not string")]
    InvalidKey(String, String),
    /// The path and the type of an invalid value.
    #[error("{0}: a value of type {1} cannot be set here")]
    InvalidField(String, String),
    #[error("type conversion error from '{0}' to '*structpb.Value'")]
    InvalidType(String),
    #[error("optional.none() dereference")]
    MissingOptional,
    /// A part of the value cannot be read.
    #[error("{0}")]
    Unread(#[from] EvalError),
}

/// What is left of [`MAX_MADE`].
#[derive(Debug)]
pub(super) struct Room(Cell<usize>);

impl Default for Room {
    fn default() -> Self {
        Self(Cell::new(MAX_MADE))
    }
}

impl Room {
    /// Charges for a value without its content, which is charged separately.
    fn take(&self, value: &Value<'_>) -> Result<(), ConversionError> {
        self.weigh(weight::of_item().saturating_add(match value {
            Value::String(text) => weight::of_text(text.len()),
            // Counted as base64.
            Value::Bytes(bytes) => weight::of_text(bytes.len().saturating_mul(2)),
            Value::Map(_) | Value::Opaque(_) => weight::of_map(),
            _ => 0,
        }))
    }

    fn name(&self, name: &str) -> Result<(), ConversionError> {
        self.weigh(weight::of_member(name))
    }

    /// Copies a string of an operation; an expression may repeat it like any value.
    ///
    /// # Errors
    /// If the memory limit is exceeded.
    pub(super) fn text(&self, text: &str) -> Result<String, MadeError> {
        self.weigh(weight::of_text(text.len())).map_err(MadeError::Text)?;
        Ok(text.to_owned())
    }

    fn weigh(&self, bytes: usize) -> Result<(), ConversionError> {
        self.0.set(self.0.get().checked_sub(bytes).ok_or(ConversionError::TooLarge)?);
        Ok(())
    }
}

/// The arena for results, and the remaining memory.
#[derive(Clone, Copy)]
pub(super) struct Making<'a, 'r> {
    pub(super) arena: &'a Bump,
    pub(super) room: &'r Room,
}

/// Returns the fields that an object sets.
///
/// # Errors
/// If types are not named after the fields that contain them, for values that objects cannot contain, and if the memory limit is
/// exceeded.
pub(super) fn object<'a>(made: &Made<'a>, making: Making<'a, '_>) -> Result<Json, MadeError> {
    named_by_fields(made, making.arena)?;
    fields(made, &mut String::new(), making).map_err(MadeError::Object)
}

/// The value of an operation.
///
/// # Errors
/// As of [`object`].
pub(super) fn value<'a>(value: &Value<'a>, making: Making<'a, '_>) -> Result<Json, MadeError> {
    if let Value::Opaque(Opaque::Made(made)) = value {
        named_by_fields(made, making.arena)?;
    }
    plain(value, making).map_err(MadeError::Value)
}

/// A value as protocol buffers write it as JSON.
fn plain<'a>(value: &Value<'a>, making: Making<'a, '_>) -> Result<Json, ConversionError> {
    making.room.take(value)?;
    Ok(match value {
        Value::Int(i) if i.unsigned_abs() > MAX_EXACT => Json::from(i.to_string()),
        Value::Uint(u) if *u > MAX_EXACT => Json::from(u.to_string()),
        Value::Double(d) => double(*d)?,
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::String(_)
        | Value::Bytes(_)
        | Value::Duration(_)
        | Value::Timestamp(_) => value.to_json(making.arena)?,
        Value::List(list) => {
            let items = (0..list.len()).filter_map(|at| list.try_get(making.arena, at).transpose());
            items.map(|item| plain(&item?, making)).collect::<Result<_, ConversionError>>()?
        }
        Value::Map(map) => {
            members(*map, making, |name, value| Ok((name.to_owned(), plain(&value, making)?)))?
        }
        Value::Optional(Some(inner)) => plain(inner, making)?,
        Value::Optional(None) => return Err(ConversionError::MissingOptional),
        Value::Opaque(Opaque::Made(made)) => fields(made, &mut String::new(), making)?,
        Value::Type(_) | Value::Opaque(_) => {
            return Err(ConversionError::InvalidType(runtime_type::name_of(value).to_owned()));
        }
    })
}

fn fields<'a>(made: &Made<'a>, path: &mut String, making: Making<'a, '_>) -> Result<Json, ConversionError> {
    let length = path.len();
    let mut set = serde_json::Map::new();
    for (name, value) in made.fields() {
        making.room.name(name)?;
        path.push('.');
        path.push_str(name);
        set.insert((*name).to_owned(), field(value, path, making)?);
        path.truncate(length);
    }
    Ok(Json::Object(set))
}

/// Converts the value of a field: a schema rejects anything for which Go has no JSON.
fn field<'a>(value: &Value<'a>, path: &mut String, making: Making<'a, '_>) -> Result<Json, ConversionError> {
    let length = path.len();
    making.room.take(value)?;
    Ok(match value {
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Int(i) => Json::from(*i),
        Value::Double(d) => double(*d)?,
        Value::String(text) => Json::from(*text),
        Value::List(list) => {
            let mut items = Vec::with_capacity(list.len());
            for at in 0..list.len() {
                let Some(item) = list.try_get(making.arena, at)? else { continue };
                path.push_str(&format!("[{at}]"));
                items.push(field(&item, path, making)?);
                path.truncate(length);
            }
            // The items of a literal are taken as they are, and a literal inside it is no JSON.
            if let Some(at) = all_literals(items.len(), |at| list.get(at)) {
                return Err(unsuited(path, &format!("[{at}]"), list.get(at).as_ref()));
            }
            Json::Array(items)
        }
        Value::Map(map) => {
            let computed = !matches!(map, Map::Document { .. });
            members(*map, making, |name, value| {
                if computed && is_literal(&value) {
                    return Err(unsuited(path, &format!(".{name}"), Some(&value)));
                }
                path.push('.');
                path.push_str(name);
                let converted = field(&value, path, making);
                path.truncate(length);
                Ok((name.to_owned(), converted?))
            })?
        }
        Value::Opaque(Opaque::Made(made)) => fields(made, path, making)?,
        // To a schema, strings alone are strings, also where they are Base64, and no uint64 is a number.
        Value::Null
        | Value::Uint(_)
        | Value::Bytes(_)
        | Value::Duration(_)
        | Value::Timestamp(_)
        | Value::Optional(_)
        | Value::Type(_)
        | Value::Opaque(_) => return Err(unsuited(path, "", Some(value))),
    })
}

fn unsuited(path: &str, rest: &str, value: Option<&Value<'_>>) -> ConversionError {
    let name = value.map_or("null_type", runtime_type::name_of);
    ConversionError::InvalidField(format!("{path}{rest}"), name.to_owned())
}

fn is_literal(value: &Value<'_>) -> bool {
    use admit_cel::List;
    matches!(
        value,
        Value::Map(Map::Values(_) | Map::Indexed(_) | Map::Constant(_))
            | Value::List(List::Values(_) | List::Constant(_))
    )
}

/// The first item, where all of them are literals. What `+` joins is converted item by item and has others, mostly.
fn all_literals<'a>(count: usize, item: impl Fn(usize) -> Option<Value<'a>>) -> Option<usize> {
    let all = count > 0 && (0..count).all(|at| item(at).is_some_and(|item| is_literal(&item)));
    all.then_some(0)
}

fn members<'a>(
    map: Map<'a>,
    making: Making<'a, '_>,
    mut member: impl FnMut(&'a str, Value<'a>) -> Result<(String, Json), ConversionError>,
) -> Result<Json, ConversionError> {
    let mut set = serde_json::Map::new();
    for (key, _) in map.iter() {
        let Value::String(name) = key else {
            let ty = runtime_type::name_of(&key);
            return Err(ConversionError::InvalidKey(quote(&key.preview(64)), ty.to_owned()));
        };
        let Some(value) = map.try_get(making.arena, &key)? else { continue };
        making.room.name(name)?;
        let (name, value) = member(name, value)?;
        set.insert(name, value);
    }
    Ok(Json::Object(set))
}

/// A whole number is written without a fraction, as Go writes it.
fn double(value: f64) -> Result<Json, ConversionError> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match numeric::whole(value) {
        Some(whole) if value.abs() < EXACT => Ok(Json::from(whole)),
        _ => Number::from_f64(value).map(Json::Number).ok_or(ConversionError::InvalidNumber(value)),
    }
}

/// Objects below a field are named after it: `Object.spec` in `spec`.
fn named_by_fields<'a>(made: &Made<'a>, arena: &'a Bump) -> Result<(), MadeError> {
    let mut errors = Vec::new();
    check_name(made, &mut made.type_name().to_owned(), arena, &mut errors);
    if errors.is_empty() { Ok(()) } else { Err(MadeError::Misnamed(errors.join("\n"))) }
}

fn check_name<'a>(made: &Made<'a>, expected: &mut String, arena: &'a Bump, errors: &mut Vec<String>) {
    let name = made.type_name();
    if name != expected {
        errors.push(format!(
            "unexpected type name {}, expected {}, which matches field name path from root Object type",
            quote(name),
            quote(expected)
        ));
    }
    let length = expected.len();
    for (field, value) in made.fields() {
        expected.push('.');
        expected.push_str(field);
        check_names(value, expected, arena, errors);
        expected.truncate(length);
    }
}

fn check_names<'a>(value: &Value<'a>, expected: &mut String, arena: &'a Bump, errors: &mut Vec<String>) {
    match value {
        Value::Opaque(Opaque::Made(made)) => check_name(made, expected, arena, errors),
        Value::List(list) if is_literal(value) => {
            list.iter().for_each(|item| check_names(&item, expected, arena, errors));
        }
        Value::Map(map) if is_literal(value) => {
            map.iter().for_each(|(_, value)| check_names(&value, expected, arena, errors));
        }
        _ => {}
    }
}
