//! Parses types in CEL notation, as [`Type`]'s `Display` writes it.

use std::sync::Arc;

use super::{AbstractType, Type};

/// The names of types that are not the language's own, each with the number of its parameters.
pub(crate) type TypeNames = [(Box<str>, usize)];

/// Parses a type: `int`, `list(string)`, `map(string, dyn)`, `optional_type(int)`, `wrapper(int)`, `net.IP`. A single capital letter is
/// a type parameter; a dotted name whose last part is capitalised is an opaque type, unless it is a message that maps to a type:
/// `google.protobuf.Struct`. None for other texts.
///
/// ```
/// use admit_cel::parse_type;
///
/// assert_eq!(parse_type("map(string, dyn)").unwrap().to_string(), "map(string, dyn)");
/// assert_eq!(parse_type("map(string"), None);
/// ```
#[must_use]
pub fn parse_type(text: &str) -> Option<Type> {
    parse_type_of(&[], text)
}

/// Parses a type where more names are declared.
pub(crate) fn parse_type_of(names: &TypeNames, text: &str) -> Option<Type> {
    if let Some((name, arguments)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        let arguments = split_arguments(arguments).into_iter().map(|text| parse_type_of(names, text));
        let arguments: Vec<_> = arguments.collect::<Option<_>>()?;
        return parameterised(name, &arguments).or_else(|| declared(names, name, arguments));
    }
    Some(match text {
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "bool" => Type::Bool,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "null" | "null_type" => Type::Null,
        "duration" | "google.protobuf.Duration" => Type::Duration,
        "timestamp" | "google.protobuf.Timestamp" => Type::Timestamp,
        "dyn" | "any" => Type::Dyn,
        "type" => Type::Type(None),
        "list" => Type::List(Arc::new(Type::Dyn)),
        "map" => Type::Map(Arc::new(Type::Dyn), Arc::new(Type::Dyn)),
        "optional_type" => Type::Optional(Arc::new(Type::Dyn)),
        _ if text.len() == 1 && text.bytes().all(|b| b.is_ascii_uppercase()) => Type::Param(text.into()),
        _ => {
            let message = text.strip_prefix("google.protobuf.").and_then(message_type);
            return message.or_else(|| declared(names, text, Vec::new())).or_else(|| opaque(text));
        }
    })
}

/// Returns the type for a message of the protocol buffers' own package.
fn message_type(name: &str) -> Option<Type> {
    let wrapped = match name {
        "Any" | "Value" => return Some(Type::Dyn),
        "ListValue" => return Some(Type::List(Arc::new(Type::Dyn))),
        "Struct" => return Some(Type::Map(Arc::new(Type::String), Arc::new(Type::Dyn))),
        "BoolValue" => Type::Bool,
        "BytesValue" => Type::Bytes,
        "DoubleValue" | "FloatValue" => Type::Double,
        "Int32Value" | "Int64Value" => Type::Int,
        "StringValue" => Type::String,
        "UInt32Value" | "UInt64Value" => Type::Uint,
        _ => return None,
    };
    Some(Type::Wrapper(Arc::new(wrapped)))
}

/// The arguments between commas that no bracket encloses.
pub(crate) fn split_arguments(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let parts = text.split(move |c| {
        match c {
            '(' => depth = depth.saturating_add(1),
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn parameterised(name: &str, arguments: &[Type]) -> Option<Type> {
    let of = |ty: &Type| Arc::new(ty.clone());
    Some(match (name, arguments) {
        ("list", [item]) => Type::List(of(item)),
        ("map", [key, value]) => Type::Map(of(key), of(value)),
        ("type", [named]) => Type::Type(Some(of(named))),
        ("optional_type", [inner]) => Type::Optional(of(inner)),
        ("wrapper", [inner]) => Type::Wrapper(of(inner)),
        _ => return None,
    })
}

/// A type that the caller named, with as many parameters as it has.
fn declared(names: &TypeNames, name: &str, parameters: Vec<Type>) -> Option<Type> {
    let is_known = names.iter().any(|(known, count)| **known == *name && *count == parameters.len());
    is_known
        .then(|| Type::Abstract(Arc::new(AbstractType { name: name.into(), parameters: parameters.into() })))
}

/// The last part of a type's name has a capital, a namespace has none.
fn opaque(name: &str) -> Option<Type> {
    let (_, last) = name.rsplit_once('.')?;
    last.starts_with(|c: char| c.is_ascii_uppercase()).then(|| Type::Opaque(name.into()))
}
