//! Translates quantities, timestamps and durations: parsing, order, sums and differences.

use admit_cel::syntax::ExprId;

use super::eval::Evaluator;
use super::reader::{BILLION, Reader};
use super::readings::Reading;
use super::term::Sort;
use super::value::{Outcome, Quantity, Value};
use super::{Undecided, undecided};

impl Evaluator<'_, '_, '_> {
    /// Translates a function on quantities or times; `None` for any other.
    pub(super) fn measure_call(
        &mut self,
        function: &str,
        all: &[ExprId],
    ) -> Option<Result<Outcome, Undecided>> {
        Some(match (function, all) {
            ("quantity" | "isQuantity", [text]) => self.read_as(*text, Reader::Quantity, function),
            ("timestamp", [text]) => self.read_as(*text, Reader::Instant, function),
            ("duration", [text]) => self.read_as(*text, Reader::Span, function),
            ("isGreaterThan" | "isLessThan" | "compareTo" | "add" | "sub", [left, right]) => {
                self.two(function, *left, *right)
            }
            ("sign" | "asInteger" | "isInteger", [operand]) => self.one(function, *operand),
            _ => return None,
        })
    }

    fn read_as(&mut self, text: ExprId, reader: Reader, function: &str) -> Result<Outcome, Undecided> {
        let span = self.ast.span(text);
        let text = self.eval(text)?;
        self.each(&text, &mut |this, value| match (value, reader) {
            (Value::Text(text), _) => {
                if this.world.terms.known_text(*text).is_none() {
                    this.world.note_reading(reader.name(), Some(span));
                }
                let reading = this.world.reading(reader, *text)?;
                Ok(this.read_value(&reading, function))
            }
            (Value::Instant(_), Reader::Instant) | (Value::Span(_), Reader::Span) => {
                Ok(this.world.good(value.clone()))
            }
            (Value::Int(seconds), Reader::Instant) => {
                let billion = this.world.terms.int(BILLION);
                let nanos = this.world.terms.mul(*seconds, billion);
                Ok(Outcome { error: this.outside(nanos, Reader::Instant), value: Value::Instant(nanos) })
            }
            (value, _) => this.no_overload(value),
        })
    }

    fn read_value(&mut self, reading: &Reading, function: &str) -> Outcome {
        let value = match function {
            "isQuantity" => return self.world.good(Value::Bool(reading.good)),
            "quantity" => {
                let integer = Some((reading.is_integer, reading.integer));
                Value::Quantity(Quantity { value: reading.value, integer, is_far: reading.is_far })
            }
            "timestamp" => Value::Instant(reading.value),
            _ => Value::Span(reading.value),
        };
        Outcome { error: self.world.terms.not(reading.good), value }
    }

    fn two(&mut self, function: &str, left: ExprId, right: ExprId) -> Result<Outcome, Undecided> {
        let (left, right) = (self.eval(left)?, self.eval(right)?);
        self.both(&left, &right, &mut |this, left, right| {
            let terms = &mut this.world.terms;
            let (a, b) = match (left, right) {
                (Value::Quantity(a), Value::Quantity(b)) => (*a, *b),
                (Value::Quantity(a), Value::Int(b)) if matches!(function, "add" | "sub") => {
                    let (billion, no) = (terms.int(BILLION), terms.bool(false));
                    (*a, Quantity { value: terms.mul(*b, billion), integer: None, is_far: no })
                }
                (Value::Unknown(what), _) | (_, Value::Unknown(what)) => return Err(what.undecided()),
                _ => return Ok(this.world.failed()),
            };
            let value = match function {
                "isGreaterThan" => Value::Bool(terms.lt(b.value, a.value)),
                "isLessThan" => Value::Bool(terms.lt(a.value, b.value)),
                "compareTo" => {
                    let difference = terms.sub(a.value, b.value);
                    Value::Int(terms.sign(difference))
                }
                _ => return Ok(this.sum(function, a, b)),
            };
            Ok(this.world.good(value))
        })
    }

    /// Sums of numbers with too many digits to model are left open.
    fn sum(&mut self, function: &str, a: Quantity, b: Quantity) -> Outcome {
        let terms = &mut self.world.terms;
        let value = if function == "add" { terms.add(a.value, b.value) } else { terms.sub(a.value, b.value) };
        let is_far = terms.or(&[a.is_far, b.is_far]);
        let error = if terms.known_bool(is_far) == Some(false) {
            is_far
        } else {
            let fails = terms.variable(Sort::Bool);
            self.world.assume(fails, is_far);
            fails
        };
        Outcome { error, value: Value::Quantity(Quantity { value, integer: None, is_far }) }
    }

    fn one(&mut self, function: &str, operand: ExprId) -> Result<Outcome, Undecided> {
        let operand = self.eval(operand)?;
        self.each(&operand, &mut |this, value| {
            let terms = &mut this.world.terms;
            match (function, value) {
                ("sign", Value::Quantity(quantity)) => {
                    let sign = terms.sign(quantity.value);
                    Ok(this.world.good(Value::Int(sign)))
                }
                ("asInteger" | "isInteger", Value::Quantity(quantity)) => {
                    let integer = quantity.integer;
                    let (is_integer, integer) =
                        integer.ok_or_else(|| undecided(format!("`{function}` of a sum of quantities")))?;
                    if function == "isInteger" {
                        return Ok(this.world.good(Value::Bool(is_integer)));
                    }
                    Ok(Outcome { error: terms.not(is_integer), value: Value::Int(integer) })
                }
                (_, value) => this.no_overload(value),
            }
        })
    }
}
