//! Translates the functions that search a string or derive a string from one.

use std::rc::Rc;

use admit_cel::PatternPart;
use admit_cel::syntax::{Expr, ExprId, Literal};

use super::eval::Evaluator;
use super::readings::{Derivation, Last};
use super::regular;
use super::term::{Sort, Term};
use super::value::{List, Outcome, Value};
use super::{Undecided, undecided};

impl Evaluator<'_, '_, '_> {
    /// Translates a call of one of these functions; `None` for any other.
    pub(super) fn found_call(
        &mut self,
        function: &str,
        all: &[ExprId],
    ) -> Option<Result<Outcome, Undecided>> {
        Some(match (function, all) {
            ("lowerAscii", [text]) => self.derive(
                *text,
                &Derivation::Lower,
                "`lowerAscii` or `upperAscii` of a string that is not constant",
            ),
            ("upperAscii", [text]) => self.derive(
                *text,
                &Derivation::Upper,
                "`lowerAscii` or `upperAscii` of a string that is not constant",
            ),
            ("trim", [text]) => {
                self.derive(*text, &Derivation::Trimmed, "`trim` of a string that is not constant")
            }
            ("find", [text, pattern]) => self.found(*text, *pattern),
            ("findAll", [text, pattern]) => self.all_found(*text, *pattern),
            ("lastIndexOf", [text, part]) => self.last(*text, *part, None),
            ("lastIndexOf", [text, part, from]) => self.last(*text, *part, Some(*from)),
            _ => return None,
        })
    }

    fn derive(&mut self, text: ExprId, derivation: &Derivation, note: &str) -> Result<Outcome, Undecided> {
        let span = self.ast.span(text);
        let text = self.eval(text)?;
        self.each(&text, &mut |this, value| match value {
            Value::Text(text) => {
                if this.world.terms.known_text(*text).is_none() {
                    this.world.note_reading(note, Some(span));
                }
                let derived = this.world.derived(derivation, *text)?;
                Ok(this.world.good(Value::Text(derived)))
            }
            value => this.no_overload(value),
        })
    }

    fn constant(&self, text: ExprId) -> Option<&str> {
        match self.ast.expr(text) {
            Expr::Literal(Literal::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Translates `find`: known for a literal pattern, or one anchored at both ends.
    fn found(&mut self, text: ExprId, pattern: ExprId) -> Result<Outcome, Undecided> {
        let pattern = self.constant(pattern).map(str::to_owned);
        let pattern = pattern.ok_or_else(|| undecided("`find` with a pattern that is not constant"))?;
        let part = PatternPart::of(&pattern).map_err(|_| undecided("`find` with an invalid pattern"))?;
        let language = regular::language(&pattern).map_err(|why| undecided(format!("`find` with {why}")))?;
        let is_whole = match &part {
            PatternPart::Concat(parts) => {
                matches!(parts.as_slice(), [PatternPart::Start, .., PatternPart::End])
            }
            _ => false,
        };
        let literal = literal_of(&part);
        if literal.is_none() && !is_whole {
            return self.derive(
                text,
                &Derivation::Found(pattern.into()),
                "`find` in a string that is not constant",
            );
        }
        let text = self.eval(text)?;
        self.each(&text, &mut |this, value| {
            let Value::Text(text) = value else { return this.no_overload(value) };
            let nothing = this.world.terms.text("");
            let (has, found) = match &literal {
                Some(literal) => {
                    let literal = this.world.constant(literal)?;
                    (this.world.terms.contains(*text, literal), literal)
                }
                None => (this.world.terms.in_language(*text, &language), *text),
            };
            let found = this.world.terms.ite(has, found, nothing);
            Ok(this.world.good(Value::Text(found)))
        })
    }

    /// Translates `findAll` with a literal pattern: it matches once less than `split` gives parts.
    fn all_found(&mut self, text: ExprId, pattern: ExprId) -> Result<Outcome, Undecided> {
        let literal = self.constant(pattern).and_then(|pattern| PatternPart::of(pattern).ok());
        let literal = literal.as_ref().and_then(literal_of);
        let literal =
            literal.ok_or_else(|| undecided("`findAll` with a pattern that is not a literal string"))?;
        let text = self.eval(text)?;
        self.each(&text, &mut |this, value| {
            let Value::Text(text) = value else { return this.no_overload(value) };
            let found = this.world.constant(&literal)?;
            let Value::List(parts) = this.parts(*text, &literal, None)? else {
                return Err(undecided("`findAll` in a string that is not constant"));
            };
            let items: Vec<(Term, Value)> =
                parts.items.iter().skip(1).map(|(there, _)| (*there, Value::Text(found))).collect();
            Ok(this.world.good(Value::List(List { items: Rc::new(items), kind: parts.kind })))
        })
    }

    fn last(&mut self, text: ExprId, part: ExprId, from: Option<ExprId>) -> Result<Outcome, Undecided> {
        let (text, part) = (self.eval(text)?, self.eval(part)?);
        let from = from.map(|from| self.eval(from)).transpose()?;
        let outcome = self.both(&text, &part, &mut |this, text, part| {
            let (Value::Text(text), Value::Text(part)) = (text, part) else {
                return match part {
                    Value::Unknown(what) => Err(what.undecided()),
                    _ => this.no_overload(text),
                };
            };
            match from.as_ref().map(|from| &from.value) {
                None => Ok(this.last_position(*text, *part)),
                Some(Value::Int(from)) => Ok(this.last_position_from(*text, *part, *from)),
                Some(_) => Err(undecided("`lastIndexOf` with an offset that is not a number")),
            }
        })?;
        let Some(from) = from else { return Ok(outcome) };
        Ok(self.world.after(from.error, outcome))
    }

    /// Translates `lastIndexOf(part)`; of an empty part it is the length of the string.
    fn last_position(&mut self, text: Term, part: Term) -> Outcome {
        let position = self.last_of(text, part);
        let terms = &mut self.world.terms;
        let (empty, length) = (terms.text(""), terms.length(text));
        let is_empty = terms.eq(part, empty);
        let value = Value::Int(terms.ite(is_empty, length, position));
        self.world.good(value)
    }

    /// Translates `lastIndexOf(part, from)`: a match starts at `from` or before. An empty part matches at
    /// `from` itself.
    fn last_position_from(&mut self, text: Term, part: Term, from: Term) -> Outcome {
        let terms = &mut self.world.terms;
        let (zero, minus_one, empty) = (terms.int(0), terms.int(-1), terms.text(""));
        let (length, width) = (terms.length(text), terms.length(part));
        let end = terms.add(from, width);
        let before = terms.part(text, zero, end);
        let position = self.last_of(before, part);
        let terms = &mut self.world.terms;
        let is_empty = terms.eq(part, empty);
        let is_place = terms.lt(from, length);
        let found = terms.ite(is_place, position, minus_one);
        let value = Value::Int(terms.ite(is_empty, from, found));
        let (searches, is_before) = (terms.not(is_empty), terms.lt(from, zero));
        Outcome { error: terms.and(&[searches, is_before]), value }
    }

    /// Returns where a nonempty part occurs last; -1 if nowhere.
    fn last_of(&mut self, text: Term, part: Term) -> Term {
        let world = &mut *self.world;
        let constants = (world.terms.known_text(text), world.terms.known_text(part));
        if let (Some(text), Some(part)) = constants {
            let found = text.rfind(part).and_then(|at| text.get(..at)).map(|before| before.chars().count());
            let found = found.and_then(|count| i128::try_from(count).ok()).unwrap_or(-1);
            return world.terms.int(found);
        }
        let known = world.readings.last.iter().find(|known| known.text == text && known.part == part);
        if let Some(known) = known {
            return known.position;
        }
        let terms = &mut world.terms;
        let (before, after) = (terms.variable(Sort::Text), terms.variable(Sort::Text));
        let (minus_one, one, empty) = (terms.int(-1), terms.int(1), terms.text(""));
        let has = terms.contains(text, part);
        let behind = terms.join(part, after);
        let whole = terms.join(before, behind);
        let is_cut_so = terms.eq(text, whole);
        // A later match would start after the first character of this one.
        let width = terms.length(behind);
        let later = terms.part(behind, one, width);
        let is_later = terms.contains(later, part);
        let is_last = terms.not(is_later);
        let is_empty = terms.eq(part, empty);
        let is_some = terms.not(is_empty);
        let searches = terms.and(&[has, is_some]);
        let holds = terms.and(&[is_cut_so, is_last]);
        let at = terms.length(before);
        let position = terms.ite(has, at, minus_one);
        world.assume(searches, holds);
        world.readings.last.push(Last { text, part, position });
        position
    }
}

/// Returns the string that a pattern matches, if the pattern is a nonempty literal.
fn literal_of(part: &PatternPart) -> Option<String> {
    match part {
        PatternPart::Text(text) if !text.is_empty() => Some(text.to_string()),
        _ => None,
    }
}
