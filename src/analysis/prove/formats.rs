//! Texts of a format: fields that rules see as instants and durations, and the named formats that expressions ask about.

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
    /// Whether reading it may be an error.
    pub(super) fn may_be_unreadable(&self) -> bool {
        match self {
            Self::Unreadable => true,
            Self::Choice(_, yes, no) => yes.may_be_unreadable() || no.may_be_unreadable(),
            _ => false,
        }
    }
}

impl World<'_> {
    /// A text as rules of a definition see it.
    pub(super) fn formatted(&mut self, text: Term, node: &Node<'_>) -> Result<Value, Undecided> {
        let reader = match node.schema.checks.format.as_deref() {
            Some("date-time") => Reader::DateTimeField,
            Some("date") => Reader::DateField,
            Some("duration") => Reader::SpanField,
            Some("byte") => {
                self.guesses.texts.push(text);
                return Ok(Value::Unknown("bytes"));
            }
            _ => return Ok(Value::Text(text)),
        };
        // What is only written need not be of the format.
        if !node.is_valid || node.made_of.is_some() {
            self.guesses.texts.push(text);
            return Ok(Value::Unknown("a time or a duration that another version wrote"));
        }
        let reading = self.reading(reader, text)?;
        self.note_reading(reader.name(), None);
        let value = match reader {
            Reader::SpanField => Value::Span(reading.value),
            _ => Value::Instant(reading.value),
        };
        Ok(self.merged(reading.good, value, Value::Unreadable))
    }

    /// What comes of a field: an error, where its text is not what its format promises.
    pub(super) fn read(&mut self, outcome: Outcome) -> Outcome {
        if !outcome.value.may_be_unreadable() {
            return outcome;
        }
        let (error, value) = self.readable(outcome.value);
        Outcome { error: self.terms.or(&[outcome.error, error]), value }
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

    /// The model with texts of the formats that are not followed, where it says other ones: different texts for different ones.
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

    /// Whether a text is of a format.
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
        // Of `prefix/name` the name is bound, and the prefix as a subdomain is.
        let (slash, zero, one) = (self.terms.text("/"), self.terms.int(0), self.terms.int(1));
        let at = self.terms.position(text, slash, zero);
        let before = self.terms.add(at, one);
        let name = self.terms.sub(length, before);
        let longest = self.terms.int(Format::Subdomain.pattern().1);
        let (fits, prefix_fits) = (self.terms.le(name, most), self.terms.le(at, longest));
        Ok(self.terms.and(&[is_written_so, fits, prefix_fits]))
    }
}
