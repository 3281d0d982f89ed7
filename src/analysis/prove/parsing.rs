//! Models strings that are parsed into parts. As in [`super::reading`], the parts are variables, as if the parser were uninterpreted:
//! equal strings have equal parts, and for constants the engine computes them.

use std::collections::BTreeSet;

use super::document::World;
use super::inclusion;
use super::model::{Given, Model};
use super::parser::{Parser, number};
use super::readings::Parsed;
use super::regular;
use super::sample;
use super::term::{Sort, Term};
use super::{Undecided, undecided};

/// The maximum number of parsed strings in a query: all pairs of them are compared.
const MOST_PARSED: usize = 100;
/// The maximum number of constants whose parts are asserted.
const MOST_FACTS: usize = 2_000;
/// The range of IPv4-mapped IPv6 addresses, which the parser rejects.
const MAPPED: (u128, u128) = (0xffff_0000_0000, 0xffff_ffff_ffff);

impl World<'_> {
    /// Returns the terms for the parts of a string.
    pub(super) fn parsed(&mut self, parser: Parser, text: Term) -> Result<Parsed, Undecided> {
        self.check_size()?;
        let known = self.readings.parsed.iter().find(|known| known.parser == parser && known.text == text);
        if let Some(known) = known {
            return Ok(known.clone());
        }
        if let Some(parts) = self.terms.known_text(text).map(|text| parser.parts(text)) {
            let good = self.terms.bool(parts.is_some());
            let parts = parts.unwrap_or_default();
            let parts = parser.sorts().iter().enumerate().map(|(at, sort)| match parts.get(at) {
                Some(part) => self.given(part),
                // Parts of an invalid string are never used.
                None => match sort {
                    Sort::Bool => self.terms.bool(false),
                    Sort::Int => self.terms.int(0),
                    Sort::Text => self.terms.text(""),
                },
            });
            return Ok(Parsed { parser, text, good, parts: parts.collect() });
        }
        if let Some((condition, yes, no)) = self.terms.as_choice(text) {
            let (yes, no) = (self.parsed(parser, yes)?, self.parsed(parser, no)?);
            let mut choose = |yes, no| self.terms.ite(condition, yes, no);
            let good = choose(yes.good, no.good);
            let parts = yes.parts.iter().zip(&no.parts).map(|(yes, no)| choose(*yes, *no)).collect();
            return Ok(Parsed { parser, text, good, parts });
        }
        if self.readings.parsed.len() >= MOST_PARSED {
            return Err(undecided("too many strings that are parsed as addresses, networks or URLs"));
        }
        let good = self.terms.variable(Sort::Bool);
        let parts = parser.sorts().iter().map(|sort| self.terms.variable(*sort)).collect();
        let parsed = Parsed { parser, text, good, parts };
        self.assume_parts(&parsed);
        for other in self.readings.parsed.clone() {
            self.assume_agreement(&parsed, &other);
        }
        self.readings.parsed.push(parsed.clone());
        Ok(parsed)
    }

    fn given(&mut self, part: &Given) -> Term {
        match part {
            Given::Bool(value) => self.terms.bool(*value),
            Given::Int(value) => self.terms.int(*value),
            Given::Text(text) => self.terms.text(text),
        }
    }

    /// Asserts what holds for the parts of any string.
    fn assume_parts(&mut self, parsed: &Parsed) {
        let always = self.terms.bool(true);
        match (parsed.parser, parsed.parts.as_slice()) {
            (Parser::Address | Parser::Network, [is_v4, value, last]) => {
                let (least, most) = if parsed.parser == Parser::Address { (2, 45) } else { (4, 49) };
                let length = self.terms.length(parsed.text);
                self.between(parsed.good, length, Some(least), Some(most));
                let is_v6 = self.terms.not(*is_v4);
                self.between(*is_v4, *value, Some(0), Some(u32::MAX.into()));
                self.between(is_v6, *value, Some(i128::MIN), Some(i128::MAX));
                let (first, most) = (self.terms.int(number(MAPPED.0)), self.terms.int(number(MAPPED.1)));
                let sides = [self.terms.lt(*value, first), self.terms.lt(most, *value)];
                let is_own = self.terms.or(&sides);
                self.assume(is_v6, is_own);
                if parsed.parser == Parser::Address {
                    // IPv4 addresses have only one spelling.
                    self.assume(*is_v4, *last);
                } else {
                    self.between(always, *last, Some(0), Some(128));
                    self.between(*is_v4, *last, None, Some(32));
                }
            }
            (_, [scheme, host, hostname, port, path, count, _]) => {
                self.between(always, *count, Some(0), None);
                let (nothing, slash, star) =
                    (self.terms.text(""), self.terms.text("/"), self.terms.text("*"));
                let has_none = self.terms.eq(*host, nothing);
                for part in [*hostname, *port] {
                    let is_empty = self.terms.eq(part, nothing);
                    self.assume(has_none, is_empty);
                }
                let paths = [
                    self.terms.eq(*path, nothing),
                    self.terms.eq(*path, star),
                    self.terms.starts_with(*path, slash),
                ];
                let is_path = self.terms.or(&paths);
                self.assume(always, is_path);
                for (part, pattern) in [(*scheme, "^([a-z][-+.a-z0-9]*)?$"), (*port, "^[0-9]*$")] {
                    if let Ok(language) = regular::language(pattern) {
                        let is_one = self.terms.in_language(part, &language);
                        self.assume(always, is_one);
                    }
                }
            }
            _ => {}
        }
    }

    /// Asserts that equal strings have equal parts, and that an IPv4 address has one spelling.
    fn assume_agreement(&mut self, parsed: &Parsed, other: &Parsed) {
        let same = self.terms.eq(parsed.text, other.text);
        let never_same = self.terms.known_bool(same) == Some(false);
        if parsed.parser != other.parser {
            let are_numbers = parsed.parser != Parser::Url && other.parser != Parser::Url;
            if are_numbers && !never_same {
                let both = self.terms.and(&[parsed.good, other.good]);
                let not_both = self.terms.not(both);
                self.assume(same, not_both);
            }
            return;
        }
        let mut equal: Vec<Term> = Vec::new();
        for (part, others) in parsed.parts.iter().zip(&other.parts) {
            equal.push(self.terms.eq(*part, *others));
        }
        let are_good = self.terms.eq(parsed.good, other.good);
        if !never_same {
            let all = self.terms.and(&equal);
            let agree = self.terms.and(&[are_good, all]);
            self.assume(same, agree);
        }
        if let Some(is_canonical) = canonical(parsed) {
            equal.extend([parsed.good, other.good, is_canonical]);
            let are_one = self.terms.and(&equal);
            self.assume(are_one, same);
        }
    }

    /// Asserts the parts of the constants of a query, and what the content of strings implies for their parts.
    pub(super) fn settle_parsed(&mut self, roots: &[Term], constants: &BTreeSet<String>) {
        let mut left = MOST_FACTS;
        let parsed = self.readings.parsed.clone();
        let looked_into = if parsed.is_empty() { BTreeSet::new() } else { self.terms.looked_into(roots) };
        for parsed in parsed {
            for constant in constants.iter().take(left) {
                self.settle_parts(&parsed, constant);
            }
            left = left.saturating_sub(constants.len());
            self.settle_parts_of_pattern(&parsed);
            if looked_into.contains(&parsed.text) {
                self.settle_parts_of_text(&parsed, constants);
            }
            if parsed.parser == Parser::Url {
                self.settle_empty_url(&parsed);
            }
        }
    }

    fn settle_parts(&mut self, parsed: &Parsed, constant: &str) {
        let text = self.terms.text(constant);
        let parts = parsed.parser.parts(constant);
        // Most constants are unrelated to this string.
        if !self.terms.are_compared(parsed.text, text) && parts.is_none() {
            return;
        }
        let same = self.terms.eq(parsed.text, text);
        let is_read = parts.is_some();
        let good = self.terms.bool(is_read);
        let mut equal = vec![self.terms.eq(parsed.good, good)];
        for (part, given) in parsed.parts.iter().zip(parts.unwrap_or_default()) {
            let given = self.given(&given);
            equal.push(self.terms.eq(*part, given));
        }
        let agrees = self.terms.and(&equal);
        self.assume(same, agrees);
        if let Some(is_canonical) = canonical(parsed).filter(|_| is_read) {
            equal.push(is_canonical);
            let is_it = self.terms.and(&equal);
            self.assume(is_it, same);
        }
    }

    /// Asserts what the pattern of a string implies for its parts.
    fn settle_parts_of_pattern(&mut self, parsed: &Parsed) {
        const OCTET: &str = "([0-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])";
        let Some((here, schema)) = self.text_places.get(&parsed.text).copied() else { return };
        let Some(pattern) = schema.checks.pattern.as_ref().map(|pattern| pattern.text().to_owned()) else {
            return;
        };
        let is_within = |outer: &str| inclusion::is_within(&pattern, outer) == Some(true);
        let Some(is_v4) = parsed.parts.first().copied() else { return };
        let address = format!("{OCTET}(\\.{OCTET}){{3}}");
        let (whole, needs) = match parsed.parser {
            Parser::Address => (format!("^{address}$"), "^[^.:]*$"),
            Parser::Network => (format!("^{address}/([0-9]|[12][0-9]|3[0-2])$"), "^[^/]*$"),
            Parser::Url => return,
        };
        if is_within(&whole) {
            self.assume(here, parsed.good);
        }
        if is_within(needs) {
            let is_none = self.terms.not(parsed.good);
            self.assume(here, is_none);
        }
        if is_within("^[^:]*$") {
            let when = self.terms.and(&[here, parsed.good]);
            self.assume(when, is_v4);
        }
    }

    /// Where rules inspect a string's content, asserts what its parts imply for it.
    fn settle_parts_of_text(&mut self, parsed: &Parsed, constants: &BTreeSet<String>) {
        let text = parsed.text;
        if let (Parser::Url, [scheme, .., is_read]) = (parsed.parser, parsed.parts.as_slice()) {
            let is_url = self.terms.and(&[parsed.good, *is_read]);
            // A string that `isURL` accepts and `url` rejects has a host without scheme, or a fragment.
            let (slashes, hash) = (self.terms.text("//"), self.terms.text("#"));
            let odd = [self.terms.starts_with(text, slashes), self.terms.contains(text, hash)];
            let is_odd = self.terms.or(&odd);
            let unread = self.terms.not(*is_read);
            let is_taken = self.terms.and(&[parsed.good, unread]);
            self.assume(is_taken, is_odd);
            for constant in constants {
                let value = self.terms.text(constant);
                if !self.terms.are_compared(*scheme, value) || !is_scheme(constant) {
                    continue;
                }
                let is_it = self.terms.eq(*scheme, value);
                let begins = format!("(re.++ {} (str.to_re \":\") re.all)", regular::in_any_case(constant));
                let begins = self.terms.in_language(text, &begins);
                let agrees = self.terms.eq(is_it, begins);
                self.assume(is_url, agrees);
            }
            return;
        }
        let Some(is_v4) = parsed.parts.first().copied() else { return };
        let (v4, any) = match parsed.parser {
            Parser::Address => ("^[0-9]{1,3}(\\.[0-9]{1,3}){3}$", "^[0-9a-fA-F:.]{2,45}$"),
            _ => ("^[0-9]{1,3}(\\.[0-9]{1,3}){3}/[0-9]{1,2}$", "^[0-9a-fA-F:.]{2,45}/[0-9]{1,3}$"),
        };
        let (Ok(v4), Ok(any)) = (regular::language(v4), regular::language(any)) else { return };
        let is_any = self.terms.in_language(text, &any);
        self.assume(parsed.good, is_any);
        let of_v4 = self.terms.and(&[parsed.good, is_v4]);
        let is_so = self.terms.in_language(text, &v4);
        self.assume(of_v4, is_so);
        let colon = self.terms.text(":");
        let has_none = self.terms.contains(text, colon);
        let has_none = self.terms.not(has_none);
        let agrees = self.terms.eq(is_v4, has_none);
        self.assume(parsed.good, agrees);
    }

    /// Asserts that the empty string is no URL.
    fn settle_empty_url(&mut self, parsed: &Parsed) {
        let nothing = self.terms.text("");
        if self.terms.are_compared(parsed.text, nothing) {
            self.settle_parts(parsed, "");
        }
    }

    /// Replaces the strings of a model by ones that have the model's parts, in the `nth` spelling.
    pub(super) fn with_parts(&self, model: &mut Model, nth: usize) {
        let variables = self.readings.parsed.iter().filter(|parsed| self.terms.is_variable(parsed.text));
        for (place, parsed) in variables.enumerate() {
            let name = self.terms.name(parsed.text);
            let good = self.terms.known_bool(parsed.good);
            let good = good.unwrap_or(model.get(&self.terms.name(parsed.good)) == Some(&Given::Bool(true)));
            let parts: Option<Vec<Given>> =
                parsed.parts.iter().map(|part| model.get(&self.terms.name(*part)).cloned()).collect();
            let Some(parts) = parts else { continue };
            let read = match model.get(&name) {
                Some(Given::Text(text)) => parsed.parser.parts(text),
                _ => None,
            };
            if model.contains_key(&name)
                && (if good { read.as_ref() == Some(&parts) } else { read.is_none() })
            {
                continue;
            }
            let texts: Vec<String> = if good {
                parsed.parser.spellings(&parts)
            } else {
                parsed.parser.unreadable().iter().map(|text| (*text).to_owned()).collect()
            };
            let schema = self.text_places.get(&parsed.text).map(|(_, schema)| *schema);
            let is_allowed = |text: &&String| schema.is_none_or(|schema| sample::allows(schema, text));
            let allowed: Vec<&String> = texts.iter().filter(is_allowed).collect();
            // Two strings may be two spellings of one address; for URLs the first spelling is best.
            let at = match parsed.parser {
                Parser::Url => nth.min(allowed.len().saturating_sub(1)),
                _ => nth.saturating_add(place).checked_rem(allowed.len()).unwrap_or(0),
            };
            if let Some(text) = allowed.get(at).copied().or(texts.first()) {
                model.insert(name, Given::Text(text.clone()));
            }
        }
    }
}

/// Returns the condition under which the parts determine the string: canonical addresses, and IPv4 networks.
fn canonical(parsed: &Parsed) -> Option<Term> {
    match (parsed.parser, parsed.parts.as_slice()) {
        (Parser::Address, [_, _, is_canonical]) => Some(*is_canonical),
        (Parser::Network, [is_v4, ..]) => Some(*is_v4),
        _ => None,
    }
}

/// Reports whether a string may be a scheme as parsed, which is lower case.
fn is_scheme(text: &str) -> bool {
    let may_be = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '+' | '-' | '.');
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(may_be)
}
