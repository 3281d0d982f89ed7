//! Translates arithmetic, order, `size` and conversions, with the semantics of admit-cel.

use std::rc::Rc;

use super::eval::Evaluator;
use super::reader::{BILLION, Reader};
use super::term::Term;
use super::value::{Kind, List, Outcome, Value};
use super::{Undecided, undecided};

impl Evaluator<'_, '_, '_> {
    pub(super) fn arithmetic(
        &mut self,
        function: &str,
        left: &Value,
        right: &Value,
    ) -> Result<Outcome, Undecided> {
        match (function, left, right) {
            (_, Value::Unknown(what), _) | (_, _, Value::Unknown(what)) => Err(what.undecided()),
            (_, Value::Int(left), Value::Int(right)) => Ok(self.whole(function, *left, *right)),
            ("_+_", Value::Text(left), Value::Text(right)) => {
                let joined = self.world.terms.join(*left, *right);
                Ok(self.world.good(Value::Text(joined)))
            }
            (_, Value::Instant(_) | Value::Span(_), Value::Instant(_) | Value::Span(_)) => {
                Ok(self.time(function, left, right))
            }
            ("_+_", Value::List(left), Value::List(right)) => {
                let joined = self.joined_lists(left, right)?;
                Ok(self.world.good(joined))
            }
            _ => Ok(self.world.failed()),
        }
    }

    /// Joins two lists. A document's list stays one, and so does what an empty list is joined with.
    fn joined_lists(&mut self, left: &List, right: &List) -> Result<Value, Undecided> {
        let is_merged = |list: &List| matches!(list.kind, Kind::Set | Kind::Keyed(_));
        if is_merged(left) || is_merged(right) {
            return Err(undecided("concatenation of sets or map lists"));
        }
        let is_json = |(_, item): &(Term, Value)| {
            matches!(item, Value::Null | Value::Bool(_) | Value::Int(_) | Value::Text(_) | Value::Object(_))
        };
        if left.kind == Kind::Atomic && right.kind == Kind::Made && !right.items.iter().all(is_json) {
            return Err(undecided("a list of a document with items that JSON does not have"));
        }
        self.world.make_room(left.items.len().saturating_add(right.items.len()))?;
        let items = left.items.iter().chain(right.items.iter()).cloned().collect();
        let joined = Value::List(List { items: Rc::new(items), kind: left.kind.clone() });
        if left.kind == right.kind || left.kind != Kind::Made {
            return Ok(joined);
        }
        let some: Vec<Term> = left.items.iter().map(|(there, _)| *there).collect();
        let is_some = self.world.terms.or(&some);
        Ok(self.world.merged(is_some, joined, Value::List(right.clone())))
    }

    /// Computes with 64-bit integers; overflow is an error.
    fn whole(&mut self, function: &str, left: Term, right: Term) -> Outcome {
        let terms = &mut self.world.terms;
        let (zero, minus_one) = (terms.int(0), terms.int(-1));
        let (least, most) = (terms.int(i64::MIN), terms.int(i64::MAX));
        let by_zero = terms.eq(right, zero);
        let is_least = terms.eq(left, least);
        let by_minus_one = terms.eq(right, minus_one);
        let beyond = terms.and(&[is_least, by_minus_one]);
        let (value, error) = match function {
            "_+_" => (terms.add(left, right), None),
            "_-_" => (terms.sub(left, right), None),
            "_*_" => (terms.mul(left, right), None),
            "_/_" => (terms.quotient(left, right), Some(terms.or(&[by_zero, beyond]))),
            _ => (terms.remainder(left, right), Some(terms.or(&[by_zero, beyond]))),
        };
        let error = error.unwrap_or_else(|| {
            let (low, high) = (terms.lt(value, least), terms.lt(most, value));
            terms.or(&[low, high])
        });
        Outcome { error, value: Value::Int(value) }
    }

    pub(super) fn order(
        &mut self,
        function: &str,
        left: &Value,
        right: &Value,
    ) -> Result<Outcome, Undecided> {
        let (a, b, is_text) = match (left, right) {
            (Value::Unknown(what), _) | (_, Value::Unknown(what)) => return Err(what.undecided()),
            (Value::Int(a), Value::Int(b))
            | (Value::Instant(a), Value::Instant(b))
            | (Value::Span(a), Value::Span(b)) => (*a, *b, false),
            (Value::Text(a), Value::Text(b)) => (*a, *b, true),
            (Value::Bool(_), Value::Bool(_)) => return Err(undecided("ordering of booleans")),
            _ => return Ok(self.world.failed()),
        };
        let terms = &mut self.world.terms;
        let (a, b) = if matches!(function, "_>_" | "_>=_") { (b, a) } else { (a, b) };
        let strict = matches!(function, "_<_" | "_>_");
        let value = match (is_text, strict) {
            (false, true) => terms.lt(a, b),
            (false, false) => terms.le(a, b),
            (true, true) => terms.text_lt(a, b),
            (true, false) => {
                let greater = terms.text_lt(b, a);
                terms.not(greater)
            }
        };
        Ok(self.world.good(Value::Bool(value)))
    }

    pub(super) fn size(&mut self, value: &Value) -> Result<Outcome, Undecided> {
        let size = match value {
            Value::Text(text) => self.world.terms.length(*text),
            Value::List(list) => self.world.count(list.items.iter().map(|(there, _)| *there)),
            Value::Map(map) => self.world.count(map.entries.iter().map(|(there, ..)| *there)),
            Value::Object(id) => self.object_size(*id)?,
            value => return self.no_overload(value),
        };
        Ok(self.world.good(Value::Int(size)))
    }

    /// Returns the zero of a value's type, from which the value is subtracted to negate it.
    pub(super) fn nothing_of(&mut self, value: &Value) -> Value {
        let zero = self.world.terms.int(0);
        if let Value::Span(_) = value { Value::Span(zero) } else { Value::Int(zero) }
    }

    /// Computes with timestamps and durations; leaving their range is an error.
    fn time(&mut self, function: &str, left: &Value, right: &Value) -> Outcome {
        let terms = &mut self.world.terms;
        let (value, beyond) = match (function, left, right) {
            ("_+_", Value::Instant(a), Value::Span(b)) | ("_+_", Value::Span(b), Value::Instant(a)) => {
                (Value::Instant(terms.add(*a, *b)), None)
            }
            ("_-_", Value::Instant(a), Value::Span(b)) => {
                let least = terms.int(i64::MIN);
                (Value::Instant(terms.sub(*a, *b)), Some(terms.eq(*b, least)))
            }
            ("_+_", Value::Span(a), Value::Span(b)) => (Value::Span(terms.add(*a, *b)), None),
            ("_-_", Value::Span(a), Value::Span(b)) => (Value::Span(terms.sub(*a, *b)), None),
            ("_-_", Value::Instant(a), Value::Instant(b)) => {
                // The difference is computed in nanoseconds from whole seconds first, which may already overflow.
                let (from, to) = (terms.floor_quotient(*b, BILLION), terms.floor_quotient(*a, BILLION));
                let seconds = terms.sub(to, from);
                let bound = i64::MAX.div_euclid(BILLION);
                let (most, least) = (terms.int(bound), terms.int(bound.saturating_neg()));
                let (high, low) = (terms.lt(most, seconds), terms.lt(seconds, least));
                (Value::Span(terms.sub(*a, *b)), Some(terms.or(&[high, low])))
            }
            _ => return self.world.failed(),
        };
        let (reader, number) = match value {
            Value::Instant(number) => (Reader::Instant, number),
            Value::Span(number) => (Reader::Span, number),
            _ => return self.world.failed(),
        };
        let outside = self.outside(number, reader);
        let error = beyond.map_or(outside, |beyond| self.world.terms.or(&[beyond, outside]));
        Outcome { error, value }
    }

    /// Returns whether a value is out of the range that a function reads.
    pub(super) fn outside(&mut self, number: Term, reader: Reader) -> Term {
        let terms = &mut self.world.terms;
        let Some((least, most)) = reader.bounds() else { return terms.bool(false) };
        let (least, most) = (terms.int(least), terms.int(most));
        let (low, high) = (terms.lt(number, least), terms.lt(most, number));
        terms.or(&[low, high])
    }

    /// Parses a string as an integer: decimal digits with an optional sign.
    fn parsed(&mut self, text: Term) -> Outcome {
        let terms = &mut self.world.terms;
        let (zero, one) = (terms.int(0), terms.int(1));
        let (minus, plus) = (terms.text("-"), terms.text("+"));
        let (has_minus, has_plus) = (terms.starts_with(text, minus), terms.starts_with(text, plus));
        let has_sign = terms.or(&[has_minus, has_plus]);
        let length = terms.length(text);
        let rest = terms.part(text, one, length);
        let (unsigned, signed) = (terms.natural(text), terms.natural(rest));
        let magnitude = terms.ite(has_sign, signed, unsigned);
        let negative = terms.sub(zero, magnitude);
        let value = terms.ite(has_minus, negative, magnitude);
        let (least, most) = (terms.int(i64::MIN), terms.int(i64::MAX));
        let is_none = terms.lt(magnitude, zero);
        let (low, high) = (terms.lt(value, least), terms.lt(most, value));
        Outcome { error: terms.or(&[is_none, low, high]), value: Value::Int(value) }
    }

    /// Formats an integer: decimal digits with an optional sign.
    fn printed(&mut self, number: Term) -> Term {
        let terms = &mut self.world.terms;
        let zero = terms.int(0);
        let is_negative = terms.lt(number, zero);
        let opposite = terms.sub(zero, number);
        let (digits, of_opposite, minus) = (terms.digits(number), terms.digits(opposite), terms.text("-"));
        let with_minus = terms.join(minus, of_opposite);
        terms.ite(is_negative, with_minus, digits)
    }

    pub(super) fn conversion(&mut self, function: &str, value: &Value) -> Result<Outcome, Undecided> {
        let same = self.world.good(value.clone());
        match (function, value) {
            (_, Value::Unknown(what)) => Err(what.undecided()),
            ("dyn", _) | ("string", Value::Text(_)) | ("int", Value::Int(_)) | ("bool", Value::Bool(_)) => {
                Ok(same)
            }
            ("int", Value::Text(text)) => Ok(self.parsed(*text)),
            ("int", Value::Instant(instant)) => {
                let seconds = self.world.terms.floor_quotient(*instant, BILLION);
                Ok(self.world.good(Value::Int(seconds)))
            }
            ("int", Value::Span(nanos)) => Ok(self.world.good(Value::Int(*nanos))),
            ("string", Value::Int(number)) => {
                let text = self.printed(*number);
                Ok(self.world.good(Value::Text(text)))
            }
            ("string", Value::Address(address)) => {
                let text = self.world.written_address(*address)?;
                Ok(self.world.good(Value::Text(text)))
            }
            ("type", value) => {
                let name = match value {
                    Value::Null => "null_type",
                    Value::Bool(_) => "bool",
                    Value::Int(_) => "int",
                    Value::Text(_) => "string",
                    Value::List(_) => "list",
                    Value::Map(_) => "map",
                    _ => return Err(undecided("the type of an object")),
                };
                Ok(self.world.good(Value::Type(name)))
            }
            _ => Err(undecided(format!("the function `{function}` on values of other types"))),
        }
    }
}
