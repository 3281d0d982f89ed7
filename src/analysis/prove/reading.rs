//! Models strings that are parsed to numbers. A result is a variable, as if the function were uninterpreted: equal strings have equal
//! results, and for constants the engine computes them. So proofs hold; a counterexample gets strings that parse to the model's
//! numbers, and is reported if the engine confirms it.

use std::collections::BTreeSet;

use super::document::World;
use super::inclusion;
use super::model::{Given, Model};
use super::reader::{BILLION, Reader};
use super::readings::Reading;
use super::sample;
use super::term::{Constant, Sort, Term};
use super::{Undecided, undecided};

/// The maximum number of parsed strings in a query: all pairs of them are compared.
const MOST_READINGS: usize = 200;
/// The number of spellings to try per string.
const SPELLINGS: usize = 11;
/// The maximum number of constants whose results are asserted.
const MOST_FACTS: usize = 4_000;

impl World<'_> {
    /// Records a function that is modelled approximately, and where it is used.
    pub(super) fn note_reading(&mut self, what: &str, span: Option<admit_cel::Span>) {
        let (side, field) = &self.guesses.at;
        let mut note = undecided(what);
        note.span = span;
        let note = if field.is_empty() { note } else { note.of(*side, field) };
        if !self.readings.notes.contains(&note) {
            self.readings.notes.push(note);
        }
    }

    /// Returns the terms for the result of a function on a string.
    pub(super) fn reading(&mut self, reader: Reader, text: Term) -> Result<Reading, Undecided> {
        self.check_size()?;
        let known = self.readings.read.iter().find(|known| known.reader == reader && known.text == text);
        if let Some(known) = known {
            return Ok(*known);
        }
        if let Some(constant) = self.terms.known_text(text).map(str::to_owned) {
            return self.constant_reading(reader, text, &constant);
        }
        if let Some((condition, yes, no)) = self.terms.as_choice(text) {
            let (yes, no) = (self.reading(reader, yes)?, self.reading(reader, no)?);
            let mut choose = |yes, no| self.terms.ite(condition, yes, no);
            return Ok(Reading {
                reader,
                text,
                good: choose(yes.good, no.good),
                value: choose(yes.value, no.value),
                is_integer: choose(yes.is_integer, no.is_integer),
                integer: choose(yes.integer, no.integer),
                is_far: choose(yes.is_far, no.is_far),
            });
        }
        if self.readings.read.len() >= MOST_READINGS {
            return Err(undecided("too many strings that are parsed as other types"));
        }
        let good =
            if reader.always_reads() { self.terms.bool(true) } else { self.terms.variable(Sort::Bool) };
        let value = self.terms.variable(Sort::Int);
        let (is_integer, is_far, integer) = if reader == Reader::Quantity {
            let flags = (self.terms.variable(Sort::Bool), self.terms.variable(Sort::Bool));
            (flags.0, flags.1, self.terms.variable(Sort::Int))
        } else {
            (self.terms.bool(false), self.terms.bool(false), self.terms.int(0))
        };
        let reading = Reading { reader, text, good, value, is_integer, integer, is_far };
        self.assume_bounds(&reading);
        let earlier: Vec<Reading> =
            self.readings.read.iter().filter(|known| known.reader == reader).copied().collect();
        for other in earlier {
            let same = self.terms.eq(text, other.text);
            if self.terms.known_bool(same) == Some(false) {
                continue;
            }
            let parts = [
                self.terms.eq(good, other.good),
                self.terms.eq(value, other.value),
                self.terms.eq(is_integer, other.is_integer),
                self.terms.eq(integer, other.integer),
                self.terms.eq(is_far, other.is_far),
            ];
            let agrees = self.terms.and(&parts);
            self.assume(same, agrees);
        }
        self.readings.read.push(reading);
        Ok(reading)
    }

    fn constant_reading(&mut self, reader: Reader, text: Term, constant: &str) -> Result<Reading, Undecided> {
        let read =
            reader.read(constant).map_err(|_| undecided("a quantity that is too large to be modelled"))?;
        let terms = &mut self.terms;
        let integer = read.and_then(|read| read.integer);
        Ok(Reading {
            reader,
            text,
            good: terms.bool(read.is_some()),
            value: terms.int(read.map_or(0, |read| read.value)),
            is_integer: terms.bool(integer.is_some()),
            integer: terms.int(integer.unwrap_or(0)),
            is_far: terms.bool(false),
        })
    }

    fn assume_bounds(&mut self, reading: &Reading) {
        let always = self.terms.bool(true);
        if let Some((least, most)) = reading.reader.bounds() {
            self.between(always, reading.value, Some(least), Some(most));
        }
        if let Some(grain) = reading.reader.grain() {
            self.assume_grain(always, reading.value, grain);
        }
        if reading.reader == Reader::Quantity {
            let (least, most) = (i128::from(i64::MIN), i128::from(i64::MAX));
            self.between(always, reading.integer, Some(least), Some(most));
            let billion = self.terms.int(BILLION);
            let scaled = self.terms.mul(reading.integer, billion);
            let same = self.terms.eq(scaled, reading.value);
            self.assume(reading.is_integer, same);
            self.assume(reading.is_integer, reading.good);
        }
    }

    /// Assumes that a value is a multiple of `grain`, under a condition.
    fn assume_grain(&mut self, when: Term, value: Term, grain: i128) {
        let (count, grain) = (self.terms.variable(Sort::Int), self.terms.int(grain));
        let multiple = self.terms.mul(count, grain);
        let same = self.terms.eq(value, multiple);
        self.assume(when, same);
    }

    /// Asserts the results for the constants of a query, and what the strings' patterns imply for their results.
    pub(super) fn settle(&mut self, roots: &[Term]) {
        if self.readings.read.is_empty()
            && self.readings.derived.is_empty()
            && self.readings.parsed.is_empty()
        {
            return;
        }
        let all: Vec<Term> = self.assumed.iter().chain(roots).copied().collect();
        let constants: BTreeSet<String> = self
            .terms
            .constants_of(&all)
            .into_iter()
            .filter_map(|constant| match constant {
                Constant::Text(text) => Some(text),
                Constant::Int(_) => None,
            })
            .collect();
        let mut left = MOST_FACTS;
        for reading in self.readings.read.clone() {
            for constant in constants.iter().take(left) {
                self.settle_constant(&reading, constant);
            }
            left = left.saturating_sub(constants.len());
            self.settle_pattern(&reading);
        }
        for derived in self.readings.derived.clone() {
            self.settle_derived(&derived, constants.iter().take(left));
            left = left.saturating_sub(constants.len());
        }
        self.settle_parsed(&all, &constants);
    }

    fn settle_constant(&mut self, reading: &Reading, constant: &str) {
        let text = self.terms.text(constant);
        // Most constants are unrelated to this string.
        let read = reading.reader.read(constant);
        if !self.terms.are_compared(reading.text, text) && !matches!(read, Ok(Some(_))) {
            return;
        }
        let Ok(read) = read else { return };
        let same = self.terms.eq(reading.text, text);
        let good = self.terms.bool(read.is_some());
        let mut parts = vec![self.terms.eq(reading.good, good)];
        if let Some(read) = read {
            let value = self.terms.int(read.value);
            parts.push(self.terms.eq(reading.value, value));
            if reading.reader == Reader::Quantity {
                let is_integer = self.terms.bool(read.integer.is_some());
                parts.push(self.terms.eq(reading.is_integer, is_integer));
                parts.push(self.terms.not(reading.is_far));
            }
        }
        let agrees = self.terms.and(&parts);
        self.assume(same, agrees);
    }

    /// Asserts what the pattern of a string implies for its result.
    fn settle_pattern(&mut self, reading: &Reading) {
        let Some((here, schema)) = self.text_places.get(&reading.text).copied() else { return };
        let Some(pattern) = schema.checks.pattern.as_ref().map(|pattern| pattern.text().to_owned()) else {
            return;
        };
        let is_within = |outer: &str| inclusion::is_within(&pattern, outer) == Some(true);
        let certain = match reading.reader {
            // Only exponents of few digits: longer ones may overflow.
            Reader::Quantity => r"^[+-]?[0-9]+(\.[0-9]*)?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$",
            // Only few digits and few terms: longer ones may overflow.
            Reader::Span => r"^[+-]?([0-9]{1,5}(ns|us|ms|s|m|h)){1,20}$",
            _ => return,
        };
        if is_within(certain) {
            self.assume(here, reading.good);
            let is_near = self.terms.not(reading.is_far);
            self.assume(here, is_near);
        }
        if is_within("^[^-]*$") {
            let when = self.terms.and(&[here, reading.good]);
            self.between(when, reading.value, Some(0), None);
        }
        let grains = [(r"^[+-]?([0-9]+(s|m|h))*$", BILLION), (r"^[+-]?([0-9]+(ms|s|m|h))*$", 1_000_000)];
        let coarse = grains.iter().find(|(coarse, _)| reading.reader == Reader::Span && is_within(coarse));
        if let Some((_, grain)) = coarse {
            self.assume_grain(here, reading.value, i128::from(*grain));
        }
    }

    /// Returns models with strings that parse to the model's numbers; also with durations rounded, since expressions and patterns may
    /// require strings without fractions of milliseconds or seconds.
    pub(super) fn respellings(&self, model: &Model) -> Vec<Model> {
        const GRAINS: [i128; 3] = [1_000_000, 1_000_000_000, 60_000_000_000];
        let of_spans = self.readings.read.iter().filter(|reading| reading.reader.is_span());
        let spans: Vec<String> = of_spans.map(|reading| self.terms.name(reading.value)).collect();
        let mut found = Vec::new();
        for nth in 0..SPELLINGS {
            let spelled = self.spelled(model, nth);
            if !found.contains(&spelled) {
                found.push(spelled);
            }
        }
        for grain in GRAINS.iter().filter(|_| !spans.is_empty()) {
            for up in [true, false] {
                let mut rounded = model.clone();
                rounded.iter_mut().filter(|(name, _)| spans.contains(name)).for_each(|(_, given)| {
                    *given = round(given, *grain, up);
                });
                found.push(self.respelled(&rounded));
            }
        }
        found
    }

    /// Returns the model with strings that parse to its numbers.
    pub(super) fn respelled(&self, model: &Model) -> Model {
        self.spelled(model, 0)
    }

    /// Returns the model with the `nth` spelling of each string.
    fn spelled(&self, model: &Model, nth: usize) -> Model {
        let mut model = model.clone();
        for reading in self.readings.read.iter().filter(|reading| self.terms.is_variable(reading.text)) {
            let name = self.terms.name(reading.text);
            let flag = |term: Term| {
                let given = model.get(&self.terms.name(term));
                self.terms.known_bool(term).unwrap_or(matches!(given, Some(Given::Bool(true))))
            };
            let Some(Given::Int(value)) = model.get(&self.terms.name(reading.value)) else { continue };
            let (good, value, is_integer) = (flag(reading.good), *value, flag(reading.is_integer));
            let is_far = good && flag(reading.is_far);
            let is_read = match model.get(&name) {
                Some(Given::Text(text)) => match reading.reader.read(text) {
                    Ok(Some(read)) => {
                        let is_same =
                            reading.reader != Reader::Quantity || read.integer.is_some() == is_integer;
                        good && !is_far && read.value == value && is_same
                    }
                    Ok(None) => !good,
                    Err(_) => is_far,
                },
                _ => false,
            };
            let texts: Vec<String> = match (good, is_far) {
                _ if is_read => continue,
                (true, true) => vec![if value < 0 { "-1e200000" } else { "1e200000" }.to_owned()],
                (true, false) => reading.reader.spellings(value, is_integer),
                (false, _) => reading.reader.unreadable().iter().map(|text| (*text).to_owned()).collect(),
            };
            let schema = self.text_places.get(&reading.text).map(|(_, schema)| *schema);
            let is_allowed = |text: &&String| schema.is_none_or(|schema| sample::allows(schema, text));
            let allowed: Vec<&String> = texts.iter().filter(is_allowed).collect();
            let at = nth.min(allowed.len().saturating_sub(1));
            if let Some(text) = allowed.get(at).copied().or(texts.first()) {
                model.insert(name, Given::Text(text.clone()));
            }
        }
        self.with_parts(&mut model, nth);
        self.with_formats(&mut model);
        model
    }
}

/// Rounds a number to a multiple of `grain`, up or down.
fn round(given: &Given, grain: i128, up: bool) -> Given {
    let Given::Int(value) = given else { return given.clone() };
    let below = value.div_euclid(grain).saturating_mul(grain);
    Given::Int(if up && below != *value { below.saturating_add(grain) } else { below })
}
