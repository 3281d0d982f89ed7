//! Finds the `kind` and other fields of a list that stand after its items, as `kubectl get -o yaml` writes them,
//! before the items are read.
//!
//! ```text
//! pieces ──`items:` begin──► Ahead: a second parser of the same text ──► ListOf, or nothing known to be a list
//! ```

use std::sync::Arc;

use granit_parser::{Event, Parser, StrInput};

use super::tree::YamlError;
use super::{scalar, source};

/// What the items of a list are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListOf {
    /// `apiVersion` and `kind` of items that leave theirs out; none in a list of anything.
    pub left_out: Option<Arc<(String, String)>>,
}

impl ListOf {
    /// Of a document with that `apiVersion` and `kind`, if it is a list: one of a single kind is where its items `are_objects`,
    /// since kinds of other documents may end as those of lists do.
    #[must_use]
    pub fn of(api_version: &str, kind: &str, are_objects: impl FnOnce() -> bool) -> Option<Self> {
        match kind.strip_suffix("List")? {
            "" => Some(Self { left_out: None }),
            kind if are_objects() => {
                Some(Self { left_out: Some(Arc::new((api_version.to_owned(), kind.to_owned()))) })
            }
            _ => None,
        }
    }
}

/// A parser that is ahead of another one on the same text, and keeps nothing of it.
pub(super) struct Ahead<'t> {
    parser: Parser<'t, StrInput<'t>>,
    /// Documents that have begun.
    document: usize,
}

/// What the fields of a document say of its being a list.
#[derive(Default)]
struct Fields {
    api_version: Option<String>,
    kind: Option<String>,
    /// Whether all of them are objects.
    items: Option<bool>,
    /// Written twice, merged or an alias: only whoever builds the document knows what it means.
    unclear: bool,
}

impl<'t> Ahead<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { parser: source::parser(text), document: 0 }
    }

    /// What the document of that number, from one, is a list of, if that can be told without building it. Numbers only grow: the
    /// text is gone through once.
    ///
    /// # Errors
    /// The first mistake in the syntax.
    pub(super) fn list(&mut self, document: usize) -> Result<Option<ListOf>, YamlError> {
        while self.document < document {
            match self.next()? {
                Event::DocumentStart(..) => self.document = self.document.saturating_add(1),
                Event::StreamEnd => return Ok(None),
                _ => {}
            }
        }
        if !matches!(self.next()?, Event::MappingStart(..)) {
            return Ok(None);
        }
        let mut fields = Fields::default();
        self.entries(|ahead, key, value| ahead.field(&mut fields, key, value))?;
        let Fields { api_version, kind, items, unclear } = fields;
        let (Some(are_objects), false) = (items, unclear) else { return Ok(None) };
        let text = |field: Option<String>| field.unwrap_or_default();
        Ok(ListOf::of(&text(api_version), &text(kind), || are_objects))
    }

    fn field(&mut self, fields: &mut Fields, key: &str, value: Event<'t>) -> Result<(), YamlError> {
        let text = match key {
            "apiVersion" => &mut fields.api_version,
            "kind" => &mut fields.kind,
            "items" => {
                fields.unclear |= fields.items.is_some() || !matches!(value, Event::SequenceStart(..));
                fields.items = Some(self.are_objects(value)?);
                return Ok(());
            }
            _ => {
                fields.unclear |= key == "<<";
                return self.skip(value);
            }
        };
        let Event::Scalar(scalar, style, _, tag) = value else {
            fields.unclear = true;
            return self.skip(value);
        };
        let here = super::Position::default();
        let value = scalar::value(&scalar, style, tag.as_deref(), here).unwrap_or_default();
        fields.unclear |= text.replace(value.as_str().unwrap_or_default().to_owned()).is_some();
        Ok(())
    }

    /// Whether each of the items that begin with `list` has a kind, or metadata.
    fn are_objects(&mut self, list: Event<'t>) -> Result<bool, YamlError> {
        if !matches!(list, Event::SequenceStart(..)) {
            self.skip(list)?;
            return Ok(false);
        }
        let mut all = true;
        loop {
            match self.next()? {
                Event::SequenceEnd | Event::StreamEnd => return Ok(all),
                Event::MappingStart(..) => {
                    let mut is_object = false;
                    self.entries(|ahead, key, value| {
                        is_object |= key == "metadata" || key == "kind";
                        ahead.skip(value)
                    })?;
                    all &= is_object;
                }
                other => {
                    all = false;
                    self.skip(other)?;
                }
            }
        }
    }

    /// Hands over the entries of the map that has just begun, which takes the rest of each value. A key that is no text is none
    /// of those that count.
    fn entries(
        &mut self,
        mut entry: impl FnMut(&mut Self, &str, Event<'t>) -> Result<(), YamlError>,
    ) -> Result<(), YamlError> {
        loop {
            let key = match self.next()? {
                Event::MappingEnd | Event::StreamEnd => return Ok(()),
                Event::Scalar(key, ..) => key,
                other => {
                    self.skip(other)?;
                    "".into()
                }
            };
            let value = self.next()?;
            entry(self, &key, value)?;
        }
    }

    /// Passes over the rest of the node that begins with `event`.
    fn skip(&mut self, event: Event<'t>) -> Result<(), YamlError> {
        let (mut event, mut open) = (event, 0_usize);
        loop {
            match event {
                Event::SequenceStart(..) | Event::MappingStart(..) => open = open.saturating_add(1),
                Event::SequenceEnd | Event::MappingEnd => open = open.saturating_sub(1),
                Event::StreamEnd => return Ok(()),
                _ => {}
            }
            if open == 0 {
                return Ok(());
            }
            event = self.next()?;
        }
    }

    /// The next event that is part of the document; the end of the text is the last for ever.
    fn next(&mut self) -> Result<Event<'t>, YamlError> {
        loop {
            match source::next(&mut self.parser)? {
                None => return Ok(Event::StreamEnd),
                Some((Event::Anchor(..) | Event::Comment(..), _)) => {}
                Some((event, _)) => return Ok(event),
            }
        }
    }
}
