//! Models strings of a format: fields that rules see as timestamps and durations, and the named formats of
//! expressions.

use super::demands::Demand;
use super::document::{Node, World};
use super::model::{Given, Model};
use super::named::Format;
use super::reader::Reader;
use super::regular;
use super::sample;
use super::term::Term;
use super::value::{Outcome, Value};
use super::{Undecided, undecided};

impl Value {
    /// Reports whether reading the value may be an error.
    pub(super) fn may_be_unreadable(&self) -> bool {
        match self {
            Self::Unreadable => true,
            Self::Choice(_, yes, no) => yes.may_be_unreadable() || no.may_be_unreadable(),
            _ => false,
        }
    }
}

impl World<'_> {
    /// Returns a string field as CEL rules of a definition see it.
    pub(super) fn formatted(&mut self, text: Term, node: &Node<'_>) -> Result<Value, Undecided> {
        let reader = match node.schema.checks.format.as_deref() {
            Some("date-time") => Reader::DateTimeField,
            Some("date") => Reader::DateField,
            Some("duration") => Reader::SpanField,
            Some("byte") => {
                self.guesses.texts.push(text);
                return Ok(Value::doubtful("bytes"));
            }
            _ => return Ok(Value::Text(text)),
        };
        // Raw input may violate the format.
        if !node.is_valid || node.made_of.is_some() {
            self.guesses.texts.push(text);
            return Ok(Value::doubtful("a timestamp or duration that was written in another version"));
        }
        let reading = self.reading(reader, text)?;
        self.note_reading(reader.name(), None);
        let value = match reader {
            Reader::SpanField => Value::Span(reading.value),
            _ => Value::Instant(reading.value),
        };
        Ok(self.merged(reading.good, value, Value::Unreadable))
    }

    /// Turns a field whose string violates its format into an error.
    pub(super) fn read(&mut self, outcome: Outcome) -> Outcome {
        if !outcome.value.may_be_unreadable() {
            return outcome;
        }
        let (error, value) = self.readable(outcome.value);
        Outcome { error: self.terms.or(&[outcome.error, error]), value }
    }

    /// Returns whether a value is there, which a server reads to see that.
    pub(super) fn presence(&mut self, found: Term, value: &Value) -> Result<Outcome, Undecided> {
        if let Some(why) = value.doubt() {
            return Err(why.undecided());
        }
        let (error, _) = self.readable(value.clone());
        let error = self.terms.and(&[found, error]);
        Ok(Outcome { error, value: Value::Bool(found) })
    }

    fn readable(&mut self, value: Value) -> (Term, Value) {
        match value {
            Value::Unreadable => (self.terms.bool(true), Value::Null),
            Value::Choice(condition, yes, no) => {
                let (yes_error, yes) = self.readable((*yes).clone());
                let (no_error, no) = self.readable((*no).clone());
                let error = self.terms.ite(condition, yes_error, no_error);
                let value = match (self.terms.known_bool(yes_error), self.terms.known_bool(no_error)) {
                    (Some(true), _) => no,
                    (_, Some(true)) => yes,
                    _ => self.merged(condition, yes, no),
                };
                (error, value)
            }
            value => (self.terms.bool(false), value),
        }
    }

    /// Completes a model with strings of formats that are not translated, distinct where the model's
    /// strings are.
    pub(super) fn with_formats(&self, model: &mut Model) {
        let mut known: Vec<(&str, String)> = Vec::new();
        for (text, (_, schema)) in &self.text_places {
            let name = self.terms.name(*text);
            let (Some(Given::Text(own)), Some(format)) = (model.get(&name), schema.checks.format.as_deref())
            else {
                continue;
            };
            if sample::allows(schema, own) {
                continue;
            }
            let key = (format, own.clone());
            let nth = known.iter().position(|known| *known == key).unwrap_or_else(|| {
                known.push(key);
                known.len().saturating_sub(1)
            });
            let other = sample::nth_of_format(format, nth).filter(|other| sample::allows(schema, other));
            if let Some(other) = other {
                model.insert(name, Given::Text(other));
            }
        }
    }

    /// Returns whether a string has a schema format; `None` for formats without a pattern.
    pub(super) fn of_format(&mut self, format: &str, text: Term) -> Option<Demand> {
        let named = match format.replace('-', "").as_str() {
            "k8sshortname" => Some(Format::Label),
            "k8slongname" => Some(Format::Subdomain),
            _ => None,
        };
        if let Some(named) = named {
            return Some(self.is_of(named, text).map_err(|why| why.what));
        }
        let language = regular::language(&pattern_of(format)?).map_err(str::to_owned);
        Some(language.map(|language| self.terms.in_language(text, &language)))
    }

    /// Returns whether a string has a format that expressions name.
    pub(super) fn is_of(&mut self, format: Format, text: Term) -> Result<Term, Undecided> {
        let (pattern, most) = format.pattern();
        let language = regular::language(pattern).map_err(undecided)?;
        let most = self.terms.int(most);
        let is_written_so = self.terms.in_language(text, &language);
        let length = self.terms.length(text);
        if format != Format::QualifiedName {
            let fits = self.terms.le(length, most);
            return Ok(self.terms.and(&[is_written_so, fits]));
        }
        // A qualified name `prefix/name` limits the name, and the prefix like a DNS subdomain.
        let (slash, zero, one) = (self.terms.text("/"), self.terms.int(0), self.terms.int(1));
        let at = self.terms.position(text, slash, zero);
        let before = self.terms.add(at, one);
        let name = self.terms.sub(length, before);
        let longest = self.terms.int(Format::Subdomain.pattern().1);
        let (fits, prefix_fits) = (self.terms.le(name, most), self.terms.le(at, longest));
        Ok(self.terms.and(&[is_written_so, fits, prefix_fits]))
    }
}

/// Returns the pattern of the strings that have a schema format, as admit-policy validates it; `None` if it
/// takes no pattern of moderate length.
fn pattern_of(format: &str) -> Option<String> {
    const BYTE: &str = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
    // Leading zeros are accepted.
    let quad = || format!("0*{BYTE}(\\.0*{BYTE}){{3}}");
    Some(match format.replace('-', "").as_str() {
        "ipv4" => format!("^({}|{})$", quad(), v6(true)),
        "ipv6" => format!("^({}|{})$", v6(false), v6(true)),
        "cidr" => format!(
            "^({}/0*(3[0-2]|[12]?[0-9])|({}|{})/0*(12[0-8]|1[01][0-9]|[1-9]?[0-9]))$",
            quad(),
            v6(false),
            v6(true)
        ),
        "mac" => {
            let pairs = |by: &str| {
                let group = |more: usize| format!("[0-9a-fA-F]{{2}}({by}[0-9a-fA-F]{{2}}){{{more}}}");
                [5, 7, 19].map(group).join("|")
            };
            let fours =
                [2, 3, 9].map(|more| format!("[0-9a-fA-F]{{4}}(\\.[0-9a-fA-F]{{4}}){{{more}}}")).join("|");
            format!("^({}|{}|{fours})$", pairs(":"), pairs("-"))
        }
        "uuid" => uuid("[0-9a-fA-F]", "[0-9a-fA-F]"),
        "uuid3" => uuid("3", "[0-9a-fA-F]"),
        "uuid4" => uuid("4", "[89abAB]"),
        "uuid5" => uuid("5", "[89abAB]"),
        "bsonobjectid" => "^[0-9a-fA-F]{24}$".to_owned(),
        "hexcolor" => "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$".to_owned(),
        "byte" => "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)$".to_owned(),
        _ => return None,
    })
}

fn uuid(version: &str, variant: &str) -> String {
    format!(
        "^[0-9a-fA-F]{{8}}-?[0-9a-fA-F]{{4}}-?{version}[0-9a-fA-F]{{3}}-?{variant}[0-9a-fA-F]{{3}}-?[0-9a-fA-F]{{12}}$"
    )
}

/// Builds a pattern for IPv6 addresses: eight groups, or fewer where `::` replaces at least one; the last
/// two may be an IPv4 address.
fn v6(with_v4: bool) -> String {
    const GROUP: &str = "[0-9a-fA-F]{1,4}";
    const BYTE: &str = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
    let quad = format!("{BYTE}(\\.{BYTE}){{3}}");
    let mut all =
        vec![if with_v4 { format!("({GROUP}:){{6}}{quad}") } else { format!("({GROUP}:){{7}}{GROUP}") }];
    for before in 0_u32..=7 {
        let head = match before.checked_sub(1) {
            None => String::new(),
            Some(more) => format!("{GROUP}(:{GROUP}){{{more}}}"),
        };
        let most = 7_u32.saturating_sub(before);
        if with_v4 {
            let Some(more) = most.checked_sub(2) else { continue };
            all.push(format!("{head}::({GROUP}:){{0,{more}}}{quad}"));
        } else {
            let tail = most.checked_sub(1).map(|more| format!("({GROUP}(:{GROUP}){{0,{more}}})?"));
            all.push(format!("{head}::{}", tail.unwrap_or_default()));
        }
    }
    format!("({})", all.join("|"))
}

#[cfg(test)]
mod tests {
    use admit_policy::schema::{Checks, Pattern, Schema, SchemaType};

    use super::*;

    const FORMATS: [&str; 12] = [
        "ipv4",
        "ipv6",
        "cidr",
        "mac",
        "uuid",
        "uuid3",
        "uuid4",
        "uuid5",
        "bsonobjectid",
        "hexcolor",
        "byte",
        "bson-object-id",
    ];

    /// Strings that have these formats or nearly do.
    const SEEDS: &[&str] = &[
        "10.0.0.1",
        "0010.0.00.255",
        "256.1.1.1",
        "1.2.3",
        "1.2.3.4.5",
        "::",
        "::1",
        "1::",
        "1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7::",
        "::2:3:4:5:6:7:8",
        "1::3:4:5:6:7:8",
        "1:2:3:4:5:6:1.2.3.4",
        "::ffff:1.2.3.4",
        "::1.2.3.04",
        "1:2:3:4:5::1.2.3.4",
        "1:2:3:4:5:6::1.2.3.4",
        "1:2:3:4:5:6:7:1.2.3.4",
        "fe80::1%eth0",
        "12345::",
        ":::",
        "1:::2",
        "10.0.0.0/8",
        "10.0.0.0/032",
        "10.0.0.0/33",
        "::/128",
        "::/129",
        "::/",
        "1.2.3.4/",
        "::ffff:1.2.3.4/99",
        "00:11:22:33:44:aa",
        "00-11-22-33-44-AA",
        "0011.2233.44aa",
        "00:11:22:33:44:55:66:77",
        "00:11-22:33:44:55",
        "123e4567-e89b-42d3-a456-426614174000",
        "123e4567e89b32d3c456426614174000",
        "123e4567-e89b-52d3-8456-426614174000",
        "507f1f77bcf86cd799439011",
        "#fff",
        "fff",
        "#ffffff",
        "#ffff",
        "YWJj",
        "YWI=",
        "YQ==",
        "Y===",
        "",
        "====",
        "YQ==YQ==",
    ];

    #[test]
    fn patterns_say_of_texts_what_the_engine_says() {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut roll = |sides: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % sides as u64).unwrap()
        };
        let (mut good, mut bad) = ([0_usize; FORMATS.len()], [0_usize; FORMATS.len()]);
        let all: Vec<(Schema, Pattern)> = FORMATS
            .iter()
            .map(|format| {
                let checks = Checks { format: Some((*format).into()), ..Checks::default() };
                let schema = Schema {
                    schema_type: Some(SchemaType::String),
                    checks: checks.into(),
                    ..Schema::default()
                };
                assert!(regular::language(&pattern_of(format).unwrap()).is_ok(), "{format}");
                (schema, Pattern::new(&pattern_of(format).unwrap()))
            })
            .collect();
        let chars: Vec<char> = "0123456789abfAF:.-/=#%g\né".chars().collect();
        for turn in 0..20_000 {
            let mut text: Vec<char> = SEEDS[roll(SEEDS.len())].chars().collect();
            for _ in 0..if turn < 2_000 { 0 } else { roll(4) } {
                let at = roll(text.len() + 1);
                match roll(3) {
                    0 => text.insert(at, chars[roll(chars.len())]),
                    1 if at < text.len() => drop(text.remove(at)),
                    _ if at < text.len() => text[at] = chars[roll(chars.len())],
                    _ => {}
                }
            }
            let text: String = text.into_iter().collect();
            for (at, (schema, pattern)) in all.iter().enumerate() {
                let is_valid = sample::allows(schema, &text);
                assert_eq!(pattern.is_match(&text), is_valid, "{} {text:?}", FORMATS[at]);
                *(if is_valid { &mut good[at] } else { &mut bad[at] }) += 1;
            }
        }
        assert!(good.iter().chain(&bad).all(|count| *count > 100), "{good:?} {bad:?}");
    }
}
