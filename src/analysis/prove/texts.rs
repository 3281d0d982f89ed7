//! Translates string functions, with the semantics of admit-cel; positions count characters.

use std::rc::Rc;

use admit_cel::syntax::{Expr, ExprId, Literal};

use super::eval::Evaluator;
use super::named::Format;
use super::regular;
use super::term::Term;
use super::value::{List, Outcome, Value};
use super::{Undecided, undecided};

/// The number of modelled parts of `split`, beyond those that lists may have.
const MORE_PARTS: usize = 2;
/// The greatest constant index into `split` that is translated for any number of parts.
const MOST_INDEX: usize = 8;

impl Evaluator<'_, '_, '_> {
    /// Translates a string function; `None` for any other.
    pub(super) fn text_call(&mut self, function: &str, all: &[ExprId]) -> Option<Result<Outcome, Undecided>> {
        Some(match (function, all) {
            ("charAt", [_, _])
            | ("substring" | "indexOf", [_, _] | [_, _, _])
            | ("replace", [_, _, _] | [_, _, _, _]) => self.of_text(function, all),
            ("split", [text, separator]) => self.split(*text, *separator, None),
            ("split", [text, separator, limit]) => match self.ast.expr(*limit) {
                Expr::Literal(Literal::Int(limit)) => {
                    self.split(*text, *separator, usize::try_from(*limit).ok())
                }
                _ => Err(undecided("`split` with a number of parts that is not constant")),
            },
            ("join", [list]) => self.joined(*list, None),
            ("join", [list, separator]) => self.joined(*list, Some(*separator)),
            ("validate", [format, text]) => self.validated(*format, *text),
            (function, []) => match Format::of(function) {
                Some(format) => Ok(self.world.good(Value::Format(format))),
                None => return None,
            },
            _ => return None,
        })
    }

    pub(super) fn text_test(
        &mut self,
        function: &str,
        text: &Value,
        part: &Value,
    ) -> Result<Outcome, Undecided> {
        let (Value::Text(text), Value::Text(part)) = (text, part) else {
            return match part {
                Value::Unknown(what) => Err(what.undecided()),
                _ => self.no_overload(text),
            };
        };
        let terms = &mut self.world.terms;
        let holds = match function {
            "startsWith" => terms.starts_with(*text, *part),
            "endsWith" => terms.ends_with(*text, *part),
            _ => terms.contains(*text, *part),
        };
        Ok(self.world.good(Value::Bool(holds)))
    }

    pub(super) fn matches(&mut self, text: ExprId, pattern: ExprId) -> Result<Outcome, Undecided> {
        let Expr::Literal(Literal::String(pattern)) = self.ast.expr(pattern) else {
            return Err(undecided("`matches` with a pattern that is not constant"));
        };
        let language =
            regular::language(pattern).map_err(|why| undecided(format!("`matches` with {why}")))?;
        let text = self.eval(text)?;
        self.each(&text, &mut |this, value| match value {
            Value::Text(text) => {
                let holds = this.world.terms.in_language(*text, &language);
                Ok(this.world.good(Value::Bool(holds)))
            }
            value => this.no_overload(value),
        })
    }

    /// A value of another type is an error; an unsupported one is undecided.
    fn of_text(&mut self, function: &str, all: &[ExprId]) -> Result<Outcome, Undecided> {
        let Some((first, rest)) = all.split_first() else {
            return Err(undecided("a function without arguments"));
        };
        let text = self.eval(*first)?;
        let mut errors = Vec::new();
        let mut args = Vec::new();
        for arg in rest {
            let outcome = self.eval(*arg)?;
            errors.push(outcome.error);
            args.push(outcome.value);
        }
        let outcome = self.each(&text, &mut |this, value| match value {
            Value::Text(text) => this.with_arguments(function, *text, &args),
            value => this.no_overload(value),
        })?;
        let error = self.world.terms.or(&errors);
        Ok(self.world.after(error, outcome))
    }

    fn with_arguments(&mut self, function: &str, text: Term, args: &[Value]) -> Result<Outcome, Undecided> {
        let terms = &mut self.world.terms;
        let (zero, length) = (terms.int(0), terms.length(text));
        match (function, args) {
            ("charAt", [Value::Int(at)]) => {
                let one = terms.int(1);
                let value = Value::Text(terms.part(text, *at, one));
                let (low, high) = (terms.lt(*at, zero), terms.lt(length, *at));
                Ok(Outcome { error: terms.or(&[low, high]), value })
            }
            ("substring", [Value::Int(from)]) => {
                let count = terms.sub(length, *from);
                let value = Value::Text(terms.part(text, *from, count));
                let (low, high) = (terms.lt(*from, zero), terms.lt(length, *from));
                Ok(Outcome { error: terms.or(&[low, high]), value })
            }
            ("substring", [Value::Int(from), Value::Int(to)]) => {
                let count = terms.sub(*to, *from);
                let value = Value::Text(terms.part(text, *from, count));
                let (low, high) = (terms.lt(*from, zero), terms.lt(length, *to));
                let reversed = terms.lt(*to, *from);
                Ok(Outcome { error: terms.or(&[low, high, reversed]), value })
            }
            ("indexOf", [Value::Text(part)]) => Ok(self.position(text, *part, zero)),
            ("indexOf", [Value::Text(part), Value::Int(from)]) => Ok(self.position(text, *part, *from)),
            ("replace", [Value::Text(old), Value::Text(new)]) => self.replaced(text, [*old, *new], None),
            ("replace", [Value::Text(old), Value::Text(new), Value::Int(count)]) => {
                self.replaced(text, [*old, *new], Some(*count))
            }
            _ => Err(undecided(format!("the function `{function}` on values of other types"))),
        }
    }

    /// Translates `indexOf`; an empty part is found where the search begins.
    fn position(&mut self, text: Term, part: Term, from: Term) -> Outcome {
        let terms = &mut self.world.terms;
        let (zero, empty) = (terms.int(0), terms.text(""));
        let is_empty = terms.eq(part, empty);
        let found = terms.position(text, part, from);
        let value = Value::Int(terms.ite(is_empty, from, found));
        let (searches, is_before) = (terms.not(is_empty), terms.lt(from, zero));
        Outcome { error: terms.and(&[searches, is_before]), value }
    }

    fn replaced(&mut self, text: Term, parts: [Term; 2], count: Option<Term>) -> Result<Outcome, Undecided> {
        let terms = &mut self.world.terms;
        let [old, _] = parts;
        if terms.known_text(old).is_none_or(str::is_empty) {
            return Err(undecided("`replace` of a search string that is not constant, or is empty"));
        }
        let count = match count {
            None => -1,
            Some(count) => terms
                .known_int(count)
                .ok_or_else(|| undecided("`replace` with a limit that is not constant"))?,
        };
        let value = match count {
            0 => text,
            1 => terms.replaced(text, parts, false),
            ..0 => terms.replaced(text, parts, true),
            _ => return Err(undecided("`replace` with a limit above one")),
        };
        Ok(self.world.good(Value::Text(value)))
    }

    fn split(&mut self, text: ExprId, separator: ExprId, limit: Option<usize>) -> Result<Outcome, Undecided> {
        let Expr::Literal(Literal::String(separator)) = self.ast.expr(separator) else {
            return Err(undecided("`split` with a separator that is not constant"));
        };
        if separator.is_empty() {
            return Err(undecided("`split` into characters"));
        }
        let text = self.eval(text)?;
        self.each(&text, &mut |this, value| match value {
            Value::Text(text) => {
                let parts = this.parts(*text, separator, limit)?;
                Ok(this.world.good(parts))
            }
            value => this.no_overload(value),
        })
    }

    pub(super) fn parts(
        &mut self,
        text: Term,
        separator: &str,
        limit: Option<usize>,
    ) -> Result<Value, Undecided> {
        let yes = self.world.terms.bool(true);
        if let Some(known) = self.world.terms.known_text(text).map(str::to_owned) {
            let limit = limit.unwrap_or(usize::MAX);
            self.world.make_room(known.splitn(limit, separator).count())?;
            let parts =
                known.splitn(limit, separator).map(|part| (yes, Value::Text(self.world.terms.text(part))));
            return Ok(Value::list(parts.collect()));
        }
        let room = self.world.items.saturating_add(MORE_PARTS);
        let separator_text = self.world.constant(separator)?;
        let terms = &mut self.world.terms;
        let (zero, mut there, mut rest) = (terms.int(0), yes, text);
        let width = terms.length(separator_text);
        let count = limit.unwrap_or(usize::MAX).min(room);
        let mut parts = Vec::new();
        for nth in 0..count {
            let at = terms.position(rest, separator_text, zero);
            let goes_on = terms.le(zero, at);
            let is_last = nth.saturating_add(1) == count;
            let before = terms.part(rest, zero, at);
            let part = if is_last { rest } else { terms.ite(goes_on, before, rest) };
            parts.push((there, Value::Text(part)));
            if is_last && limit.is_none_or(|limit| limit > room) {
                // Strings with more parts are not modelled.
                let goes_on = terms.and(&[there, goes_on]);
                let ends = terms.not(goes_on);
                self.world.assumed.push(ends);
                self.world.is_bounded = true;
                let places = self.world.terms.variables_of(&[text]);
                let places = places.iter().filter_map(|part| self.world.text_places.get(part));
                self.world.cut_texts.extend(places.map(|(here, _)| here));
                break;
            }
            let next = terms.add(at, width);
            let (length, is_there) = (terms.length(rest), terms.and(&[there, goes_on]));
            rest = terms.part(rest, next, length);
            there = is_there;
        }
        Ok(Value::list(parts))
    }

    /// Translates `split(...)[i]` for a constant index, for any number of parts.
    pub(super) fn part_of_split(
        &mut self,
        operand: ExprId,
        key: ExprId,
    ) -> Option<Result<Outcome, Undecided>> {
        let Expr::Literal(Literal::Int(index)) = self.ast.expr(key) else { return None };
        let Expr::Call { function, target: Some(text), args } = self.ast.expr(operand) else { return None };
        let (text, separator) = match (&**function, &**args) {
            ("split", [separator]) => (*text, *separator),
            _ => return None,
        };
        let index = usize::try_from(*index).ok().filter(|index| *index <= MOST_INDEX)?;
        let limit = index.saturating_add(MORE_PARTS);
        Some(self.split(text, separator, Some(limit)).and_then(|list| {
            self.each(&list, &mut |this, value| {
                let at = Value::Int(this.world.terms.int(i128::try_from(index).unwrap_or(0)));
                let (error, there, value) = this.element(value, &at)?;
                let absent = this.world.terms.not(there);
                Ok(Outcome { error: this.world.terms.or(&[error, absent]), value })
            })
        }))
    }

    fn joined(&mut self, list: ExprId, separator: Option<ExprId>) -> Result<Outcome, Undecided> {
        let list = self.eval(list)?;
        let separator = match separator {
            Some(separator) => self.eval(separator)?,
            None => {
                let nothing = self.world.terms.text("");
                self.world.good(Value::Text(nothing))
            }
        };
        let outcome = self.each(&list, &mut |this, value| match (value, &separator.value) {
            (Value::List(list), Value::Text(separator)) => this.in_a_row(list, *separator),
            (Value::List(_), _) => Err(undecided("`join` with a separator that is not a string")),
            (value, _) => this.no_overload(value),
        })?;
        Ok(self.world.after(separator.error, outcome))
    }

    fn in_a_row(&mut self, list: &List, separator: Term) -> Result<Outcome, Undecided> {
        let (mut row, mut any) = (self.world.terms.text(""), self.world.terms.bool(false));
        let nothing = row;
        for (there, item) in list.items.iter() {
            let Value::Text(item) = item else {
                return Err(undecided("`join` of items that are not strings"));
            };
            let terms = &mut self.world.terms;
            let between = terms.ite(any, separator, nothing);
            let before = terms.join(row, between);
            let longer = terms.join(before, *item);
            row = terms.ite(*there, longer, row);
            any = terms.or(&[any, *there]);
        }
        Ok(self.world.good(Value::Text(row)))
    }

    /// Translates `validate` of a named format; the error messages are not modelled.
    fn validated(&mut self, format: ExprId, text: ExprId) -> Result<Outcome, Undecided> {
        let (format, text) = (self.eval(format)?, self.eval(text)?);
        let Value::Format(named) = format.value else { return Err(undecided("`validate` of a format")) };
        self.each(&text, &mut |this, value| match value {
            Value::Text(text) => {
                let is_of = this.world.is_of(named, *text)?;
                let is_wrong = this.world.terms.not(is_of);
                let words = Rc::new(Value::unknown("the error messages of a format"));
                Ok(this.world.good(Value::Optional(is_wrong, words)))
            }
            value => this.no_overload(value),
        })
    }
}
