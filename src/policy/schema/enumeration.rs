//! Checks `enum`: scalars are looked up by hash, so that their number does not matter.

use std::collections::HashSet;
use std::ops::Deref;

use serde_json::Value;

use super::numeric;

/// The members as written, and scalars once more where they are found at once.
///
/// ```
/// use admit_policy::schema::Enumeration;
/// use serde_json::json;
///
/// let sizes = Enumeration::new(vec![json!("S"), json!(40)]);
/// assert!(sizes.has(&json!("S")) && sizes.has(&json!(40.0)) && !sizes.has(&json!("M")));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Enumeration {
    members: Vec<Value>,
    texts: HashSet<Box<str>>,
    integers: HashSet<i64>,
    /// The bits of numbers that are no integers, and of no negative zero.
    floats: HashSet<u64>,
}

impl Enumeration {
    #[must_use]
    pub fn new(members: Vec<Value>) -> Self {
        let mut index = Self::default();
        for member in &members {
            match member {
                Value::String(text) => drop(index.texts.insert(text.as_str().into())),
                Value::Number(number) => match number.as_i64() {
                    Some(integer) => drop(index.integers.insert(integer)),
                    None => index.floats.extend(number.as_f64().map(bits)),
                },
                Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {}
            }
        }
        Self { members, ..index }
    }

    /// Whether a value is a member once it is converted to the member's Go type.
    #[must_use]
    pub fn has(&self, value: &Value) -> bool {
        match value {
            Value::Null => false,
            Value::String(text) => self.texts.contains(text.as_str()),
            Value::Number(number) => {
                let integer = number.as_i64();
                let converted = integer.or_else(|| number.as_f64().map(numeric::go_int64));
                converted.is_some_and(|integer| self.integers.contains(&integer))
                    || number.as_f64().is_some_and(|float| self.floats.contains(&bits(float)))
                    || integer.is_some_and(|code| self.texts.contains(character(code).as_str()))
            }
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => self.members.contains(value),
        }
    }
}

/// The same for equal numbers.
fn bits(float: f64) -> u64 {
    if float == 0.0 { 0 } else { float.to_bits() }
}

/// Go converts an integer to the string of that one code point.
fn character(code: i64) -> String {
    let code = u32::try_from(code).ok().and_then(char::from_u32);
    code.unwrap_or(char::REPLACEMENT_CHARACTER).to_string()
}

impl Deref for Enumeration {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.members
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_converted_to_the_type_of_the_member() {
        let allowed =
            Enumeration::new(vec![json!(1), json!(2.5), json!("A"), json!([1]), json!(null), json!(0.0)]);
        for member in
            [json!(1), json!(1.9), json!(2.5), json!("A"), json!(65), json!([1]), json!(-0.0), json!(0)]
        {
            assert!(allowed.has(&member), "{member}");
        }
        for other in [json!(2), json!("1"), json!(3.5), json!(66), json!([1.0]), json!(null), json!(true)] {
            assert!(!allowed.has(&other), "{other}");
        }
    }
}
