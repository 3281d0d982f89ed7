//! Parses signatures of overloads from CEL notation to types, and checks whether runtime values fit them.
//!
//! Input: the `signature` of a row. Output: [`Signature`], or `None` for an invalid one (a test ensures that no row has one). The
//! checker decides assignability between static types.

use std::fmt;

use crate::types::{Type, TypeNames, parse_type_of, split_arguments};
use crate::value::runtime_type;
use crate::value::{List, Value};

/// A signature that cannot be parsed, or that uses an undeclared type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignatureError(pub &'static str);

impl fmt::Display for SignatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a signature over known types: {}", self.0)
    }
}

impl std::error::Error for SignatureError {}

/// A parsed signature.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Signature {
    /// The function's name, with its namespace: `_+_`, `contains`, `optional.of`.
    pub function: &'static str,
    /// Whether the first parameter is the receiver of a member call.
    pub member: bool,
    /// The parameter types, with the receiver first.
    pub parameters: Vec<Type>,
    /// The type of the result.
    pub result: Type,
}

impl Signature {
    /// Reads `list(T).join(string) -> string`. A prefix that is a type makes a member function; any other prefix is
    /// the function's namespace.
    #[must_use]
    pub(crate) fn parse(text: &'static str) -> Option<Self> {
        Self::parse_of(&[], text)
    }

    /// Parses a signature that may use more types.
    pub(crate) fn parse_of(names: &TypeNames, text: &'static str) -> Option<Self> {
        let parse_type = |text| parse_type_of(names, text);
        let (call, result) = text.split_once(" -> ")?;
        let call = call.strip_suffix(')')?;
        let open = matching_open(call)?;
        let (head, arguments) = (call.get(..open)?, call.get(open.checked_add(1)?..)?);
        let receiver = head.rsplit_once('.').and_then(|(prefix, name)| Some((parse_type(prefix)?, name)));
        let (function, mut parameters) = match receiver {
            Some((receiver, name)) => (name, vec![receiver]),
            None => (head, Vec::new()),
        };
        if function.contains(['(', ')', ' ']) {
            return None;
        }
        let member = !parameters.is_empty();
        for argument in split_arguments(arguments) {
            parameters.push(parse_type(argument)?);
        }
        Some(Self { function, member, parameters, result: parse_type(result)? })
    }

    /// Whether a call with these values may run this overload. Containers are judged by their first item.
    #[must_use]
    pub(crate) fn accepts(&self, args: &[Value<'_>]) -> bool {
        self.parameters.len() == args.len()
            && self.parameters.iter().zip(args).all(|(parameter, value)| fits(parameter, value))
    }
}

/// Whether a value fits a parameter's type.
#[must_use]
pub(crate) fn fits(parameter: &Type, value: &Value<'_>) -> bool {
    match (parameter, value) {
        (Type::Dyn | Type::Param(_) | Type::Error, _) | (Type::Wrapper(_), Value::Null) => true,
        // Only the caller's functions know how values of such a type are represented.
        (Type::Abstract(_), _) => true,
        (Type::Wrapper(inner), value) => fits(inner, value),
        (Type::String, Value::String(_)) | (Type::Int, Value::Int(_)) | (Type::Bool, Value::Bool(_)) => true,
        (Type::List(item), Value::List(list)) => takes_any(item) || fits_first(item, list),
        (Type::Map(key, item), Value::Map(map)) => {
            (takes_any(key) && takes_any(item))
                || map.iter().next().is_none_or(|(k, v)| fits(key, &k) && fits(item, &v))
        }
        (Type::Optional(_), Value::Optional(_)) | (Type::Type(_), Value::Type(_)) => true,
        (Type::Object(_), Value::Map(_)) => true,
        (Type::List(_) | Type::Map(..) | Type::Optional(_) | Type::Type(_) | Type::Object(_), _) => false,
        (scalar, value) => scalar == runtime_type::of(value),
    }
}

const fn takes_any(parameter: &Type) -> bool {
    matches!(parameter, Type::Dyn | Type::Param(_) | Type::Error)
}

fn fits_first(item: &Type, list: &List<'_>) -> bool {
    list.get(0).is_none_or(|first| fits(item, &first))
}

/// The bracket that opens the argument list, which the end of `call` closes.
fn matching_open(call: &str) -> Option<usize> {
    let mut depth = 0_u32;
    for (index, byte) in call.bytes().enumerate().rev() {
        match byte {
            b')' => depth = depth.checked_add(1)?,
            b'(' if depth == 0 => return Some(index),
            b'(' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receivers_are_types_and_other_prefixes_namespaces() {
        let of = |text| Signature::parse(text).unwrap();
        let sort = of("list(T).sort() -> list(T)");
        assert_eq!((sort.function, sort.member, sort.parameters.len()), ("sort", true, 1));
        let range = of("lists.range(int) -> list(int)");
        assert_eq!((range.function, range.member, range.parameters), ("lists.range", false, vec![Type::Int]));
        let insert = of("cel.@mapInsert(map(K, V), K, V) -> map(K, V)");
        assert_eq!((insert.function, insert.parameters.len()), ("cel.@mapInsert", 3));
        let add = of("kubernetes.Quantity.add(int) -> kubernetes.Quantity");
        assert_eq!((add.function, add.member), ("add", true));
        assert_eq!(add.result, Type::Opaque("kubernetes.Quantity".into()));
        let none = of("optional.none() -> optional_type(T)");
        assert_eq!((none.function, none.member, none.parameters.len()), ("optional.none", false, 0));
    }

    #[test]
    fn what_is_no_signature_is_refused() {
        for text in ["size(string)", "size string) -> int", "size(strin) -> int", "f(list(int) -> int"] {
            assert_eq!(Signature::parse(text), None, "{text}");
        }
    }
}
