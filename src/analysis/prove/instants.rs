//! Translates the accessors of timestamps, in UTC and in other time zones, and of durations.

use std::rc::Rc;

use admit_cel::syntax::{Expr, ExprId, Literal};

use super::document::World;
use super::eval::Evaluator;
use super::reader::BILLION;
use super::term::{Sort, Term, Terms};
use super::value::{Outcome, Value};
use super::zones::{self, Offsets, Zone};
use super::{Undecided, undecided};

const MINUTE: i64 = 60;
const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;
/// Days in 400 years, and from 0000-03-01 to 1970-01-01.
const ERA: i64 = 146_097;
const BEFORE_1970: i64 = 719_468;
/// A duration accessor rounds through a floating-point number. The result may be off within this many
/// nanoseconds of a whole unit, and only from 2^52 nanoseconds on.
const NEAR: i64 = 4_000;
const LONG: i64 = 1 << 50;

impl Evaluator<'_, '_, '_> {
    /// Translates a function on timestamps or durations; `None` for any other.
    pub(super) fn instant_call(
        &mut self,
        function: &str,
        all: &[ExprId],
    ) -> Option<Result<Outcome, Undecided>> {
        if !matches!(
            function,
            "getFullYear"
                | "getMonth"
                | "getDate"
                | "getDayOfMonth"
                | "getDayOfYear"
                | "getDayOfWeek"
                | "getHours"
                | "getMinutes"
                | "getSeconds"
                | "getMilliseconds"
        ) {
            return None;
        }
        let (operand, zone) = match all {
            [operand] => (*operand, None),
            [operand, zone] => (*operand, Some(*zone)),
            _ => return None,
        };
        let named = zone.map(|zone| match self.ast.expr(zone) {
            Expr::Literal(Literal::String(zone)) => zones::zone(zone),
            _ => Zone::Unknown("parts of a timestamp in a time zone that is not constant"),
        });
        let named = named.unwrap_or(Zone::Fixed(0));
        if let Zone::Unknown(why) = named {
            return Some(Err(undecided(why)));
        }
        let span = self.ast.span(operand);
        Some(self.eval(operand).and_then(|operand| {
            self.each(&operand, &mut |this, value| match value {
                Value::Instant(nanos) => {
                    let offset = match &named {
                        Zone::Fixed(minutes) => {
                            let nanos = i128::from(*minutes).saturating_mul((MINUTE * BILLION).into());
                            this.world.terms.int(nanos)
                        }
                        Zone::Changing(offsets) => this.world.offset(*nanos, offsets, span),
                        Zone::None | Zone::Unknown(_) => return Ok(this.world.failed()),
                    };
                    let terms = &mut this.world.terms;
                    let local = terms.add(*nanos, offset);
                    let part = part_of(terms, local, function);
                    Ok(this.world.good(Value::Int(part)))
                }
                Value::Span(nanos) if zone.is_none() => match this.units(*nanos, function, span) {
                    Some(count) => Ok(this.world.good(Value::Int(count))),
                    None => Ok(this.world.failed()),
                },
                value => this.no_overload(value),
            })
        }))
    }

    /// Returns a duration in whole units, rounded towards zero.
    fn units(&mut self, nanos: Term, function: &str, span: admit_cel::Span) -> Option<Term> {
        let (seconds, is_rounded) = match function {
            "getHours" => (HOUR, true),
            "getMinutes" => (MINUTE, true),
            "getSeconds" => (1, true),
            "getMilliseconds" => (0, false),
            _ => return None,
        };
        let terms = &mut self.world.terms;
        if !is_rounded {
            let million = terms.int(1_000_000);
            return Some(terms.quotient(nanos, million));
        }
        let unit = seconds.saturating_mul(BILLION);
        let (size, zero) = (terms.int(unit), terms.int(0));
        let (whole, rest) = (terms.quotient(nanos, size), terms.remainder(nanos, size));
        let near = terms.int(unit.saturating_sub(NEAR));
        let opposite = terms.sub(zero, rest);
        let (above, below) = (terms.lt(near, rest), terms.lt(near, opposite));
        let (long, minus_long) = (terms.int(LONG), terms.int(LONG.saturating_neg()));
        let lengths = [terms.lt(long, nanos), terms.lt(nanos, minus_long)];
        let (is_near, is_long) = (terms.or(&[above, below]), terms.or(&lengths));
        let may_be_next = terms.and(&[is_near, is_long]);
        if terms.known_bool(may_be_next) == Some(false) {
            return Some(whole);
        }
        // Whether floating point rounds up here is left open.
        let is_next = terms.variable(Sort::Bool);
        let step = terms.sign(nanos);
        let next = terms.add(whole, step);
        let count = terms.ite(is_next, next, whole);
        self.world.assume(is_next, may_be_next);
        self.world.note_reading("a duration that is nearly a whole number of units", Some(span));
        Some(count)
    }
}

impl World<'_> {
    /// Returns the offset of a zone from UTC at a timestamp, in nanoseconds.
    fn offset(&mut self, nanos: Term, offsets: &Rc<Offsets>, span: admit_cel::Span) -> Term {
        let mut choices = vec![(0, self.nanos(offsets.first))];
        for (from, offset) in &offsets.changes {
            let offset = self.nanos(*offset);
            choices.push((*from, offset));
        }
        let known = self.chosen(nanos, &choices);
        let Some(end) = offsets.end else { return known };
        let end = self.nanos(end);
        let is_before = self.terms.lt(nanos, end);
        if self.terms.known_bool(is_before) == Some(true) {
            return known;
        }
        // One variable per zone and timestamp, however often it is read.
        let asked = self.readings.offsets.iter().find(|asked| asked.0 == nanos && asked.1 == *offsets);
        let later = match asked {
            Some((.., later)) => *later,
            None => {
                let later = self.terms.variable(Sort::Int);
                self.readings.offsets.push((nanos, Rc::clone(offsets), later));
                let day = i128::from(DAY).saturating_mul(BILLION.into());
                let after = self.terms.not(is_before);
                self.between(after, later, Some(day.saturating_neg()), Some(day));
                later
            }
        };
        self.note_reading(
            "parts of a timestamp after the year 2099 in a time zone whose offset changes",
            Some(span),
        );
        self.terms.ite(is_before, known, later)
    }

    fn nanos(&mut self, seconds: i64) -> Term {
        self.terms.int(i128::from(seconds).saturating_mul(BILLION.into()))
    }

    /// Selects the value of the last choice that begins at or before a timestamp, by binary search.
    fn chosen(&mut self, nanos: Term, choices: &[(i64, Term)]) -> Term {
        let (before, after) = choices.split_at(choices.len().div_euclid(2));
        match (before, after) {
            ([], [(_, only)]) => *only,
            (_, [(from, _), ..]) => {
                let from = self.nanos(*from);
                let is_before = self.terms.lt(nanos, from);
                let (before, after) = (self.chosen(nanos, before), self.chosen(nanos, after));
                self.terms.ite(is_before, before, after)
            }
            (_, []) => self.terms.int(0),
        }
    }
}

/// Returns one component of a timestamp.
fn part_of(terms: &mut Terms, nanos: Term, function: &str) -> Term {
    let seconds = terms.floor_quotient(nanos, BILLION);
    let days = terms.floor_quotient(seconds, DAY);
    let one = terms.int(1);
    match function {
        "getMilliseconds" => {
            let rest = terms.floor_rest(nanos, BILLION);
            terms.floor_quotient(rest, 1_000_000)
        }
        "getSeconds" => terms.floor_rest(seconds, MINUTE),
        "getMinutes" => {
            let minutes = terms.floor_quotient(seconds, MINUTE);
            terms.floor_rest(minutes, 60)
        }
        "getHours" => {
            let hours = terms.floor_quotient(seconds, HOUR);
            terms.floor_rest(hours, 24)
        }
        // 1970-01-01 was a Thursday.
        "getDayOfWeek" => {
            let four = terms.int(4);
            let days = terms.add(days, four);
            terms.floor_rest(days, 7)
        }
        _ => {
            let date = date(terms, days);
            match function {
                "getFullYear" => date.year,
                "getMonth" => terms.sub(date.month, one),
                "getDate" => date.day,
                "getDayOfMonth" => terms.sub(date.day, one),
                _ => {
                    let first = first_day(terms, date.year);
                    terms.sub(days, first)
                }
            }
        }
    }
}

struct Date {
    year: Term,
    month: Term,
    day: Term,
}

/// Converts days since 1970 to a date. Years start in March here, in eras of 400 years (H. Hinnant's
/// algorithm).
fn date(terms: &mut Terms, days: Term) -> Date {
    let (zero, one, two, five) = (terms.int(0), terms.int(1), terms.int(2), terms.int(5));
    let before = terms.int(BEFORE_1970);
    let days = terms.add(days, before);
    let (era, day_of_era) = (terms.floor_quotient(days, ERA), terms.floor_rest(days, ERA));
    let leaps = [(1_460, false), (36_524, true), (146_096, false)];
    let mut regular = day_of_era;
    for (length, adds) in leaps {
        let count = terms.floor_quotient(day_of_era, length);
        regular = if adds { terms.add(regular, count) } else { terms.sub(regular, count) };
    }
    let year_of_era = terms.floor_quotient(regular, 365);
    let begin = first_of(terms, year_of_era);
    let day_of_year = terms.sub(day_of_era, begin);
    let scaled = terms.mul(day_of_year, five);
    let scaled = terms.add(scaled, two);
    let from_march = terms.floor_quotient(scaled, 153);
    let length = terms.int(153);
    let months = terms.mul(from_march, length);
    let months = terms.add(months, two);
    let days_before = terms.floor_quotient(months, 5);
    let day = terms.sub(day_of_year, days_before);
    let day = terms.add(day, one);
    let (ten, three, nine) = (terms.int(10), terms.int(3), terms.int(9));
    let is_same_year = terms.lt(from_march, ten);
    let (later, earlier) = (terms.add(from_march, three), terms.sub(from_march, nine));
    let month = terms.ite(is_same_year, later, earlier);
    let hundreds = terms.int(400);
    let years = terms.mul(era, hundreds);
    let year = terms.add(years, year_of_era);
    let step = terms.ite(is_same_year, zero, one);
    Date { year: terms.add(year, step), month, day }
}

/// Returns the first day of a year within an era, for years that start in March.
fn first_of(terms: &mut Terms, year_of_era: Term) -> Term {
    let year_length = terms.int(365);
    let days = terms.mul(year_of_era, year_length);
    let (fourths, hundredths) =
        (terms.floor_quotient(year_of_era, 4), terms.floor_quotient(year_of_era, 100));
    let days = terms.add(days, fourths);
    terms.sub(days, hundredths)
}

/// Returns January 1 of a year in days since 1970: day 306 of the preceding year that starts in March.
fn first_day(terms: &mut Terms, year: Term) -> Term {
    let (one, january, era_length) = (terms.int(1), terms.int(306), terms.int(ERA));
    let year = terms.sub(year, one);
    let (era, year_of_era) = (terms.floor_quotient(year, 400), terms.floor_rest(year, 400));
    let begin = first_of(terms, year_of_era);
    let eras = terms.mul(era, era_length);
    let days = terms.add(eras, begin);
    let days = terms.add(days, january);
    let before = terms.int(BEFORE_1970);
    terms.sub(days, before)
}
