//! Finds the `kind` and other fields of a list that follow its items, as `kubectl get -o yaml` writes them,
//! before the items are read.
//!
//! ```text
//! pieces ──`items:` begin──► Ahead: a second parser of the same text ──► ListOf, or nothing known to be a list
//! ```
//!
//! Lists within lists are found in the same pass.

use std::collections::VecDeque;
use std::sync::Arc;

use granit_parser::{Event, Parser, StrInput};

use super::position::Position;
use super::tree::YamlError;
use super::{events, scalar};

/// The type of a list's items.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListOf {
    /// `apiVersion` and `kind` for items without them; None in a list of different kinds.
    pub left_out: Option<Arc<(String, String)>>,
}

impl ListOf {
    /// Returns the type for a document with that `apiVersion` and `kind`, if it is a list. A list of a single kind also needs items that
    /// `are_objects`, since kinds of other documents may end with `List`.
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

/// The deepest nesting of lists that is searched, which bounds the recursion; deeper lists are read as one item.
const MAX_LISTS: usize = 64;

/// A second parser of the same text that is ahead of the first, and records where lists are.
pub(super) struct Ahead<'t> {
    parser: Parser<'t, StrInput<'t>>,
    /// The number of documents that have begun.
    document: usize,
    /// The positions where the items of lists begin in the document, in order, with their types. Nested lists are included
    /// only if the outer one is a list.
    lists: VecDeque<(Position, ListOf)>,
}

/// The positions of items that may be those of a list, with their types; `None` while that is unknown.
type Found = Vec<(Position, Option<ListOf>)>;

/// The fields of an object that decide whether it is a list.
#[derive(Default)]
struct Fields {
    api_version: Option<String>,
    kind: Option<String>,
    /// Whether all items are objects.
    items: Option<bool>,
    /// Whether a field is duplicated, merged or an alias, so that its value is only known after building the document.
    unclear: bool,
    /// Whether there is a kind, or metadata.
    is_object: bool,
}

impl Fields {
    fn list(self) -> Option<ListOf> {
        let Self { api_version, kind, items, unclear, .. } = self;
        let (Some(are_objects), false) = (items, unclear) else { return None };
        let text = |field: Option<String>| field.unwrap_or_default();
        ListOf::of(&text(api_version), &text(kind), || are_objects)
    }
}

impl<'t> Ahead<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { parser: events::parser(text), document: 0, lists: VecDeque::new() }
    }

    /// Returns the type of the items that begin at `here` in the document with that number (from one), if it can be found without
    /// building the document. Numbers and positions must increase: the text is parsed once.
    ///
    /// # Errors
    /// The first syntax error.
    pub(super) fn list(&mut self, document: usize, here: Position) -> Result<Option<ListOf>, YamlError> {
        if self.document < document {
            self.lists = self.lists_of(document)?;
        }
        while self.lists.front().is_some_and(|(at, _)| *at < here) {
            self.lists.pop_front();
        }
        let is_here = self.lists.front().is_some_and(|(at, _)| *at == here);
        Ok(is_here.then(|| self.lists.pop_front()).flatten().map(|(_, list)| list))
    }

    fn lists_of(&mut self, document: usize) -> Result<VecDeque<(Position, ListOf)>, YamlError> {
        while self.document < document {
            match self.next()?.0 {
                Event::DocumentStart(..) => self.document = self.document.saturating_add(1),
                Event::StreamEnd => return Ok(VecDeque::new()),
                _ => {}
            }
        }
        let mut found = Found::new();
        if let (Event::MappingStart(_, anchor, _), _) = self.next()? {
            self.object(&mut found, anchor, 0)?;
        }
        Ok(found.into_iter().filter_map(|(at, list)| Some((at, list?))).collect())
    }

    /// Visits the object that has just begun, within `depth` lists; returns whether it is an object. If it is a list, it is added to
    /// `found`, with the lists in it.
    fn object(&mut self, found: &mut Found, anchor: usize, depth: usize) -> Result<bool, YamlError> {
        let (mut fields, from) = (Fields::default(), found.len());
        self.entries(|ahead, key, value, here| {
            fields.is_object |= key == "metadata" || key == "kind";
            match (key, &value) {
                ("items", Event::SequenceStart(_, 0, _)) if anchor == 0 && depth < MAX_LISTS => {
                    fields.unclear |= fields.items.is_some();
                    found.push((here, None));
                    fields.items = Some(ahead.items(found, depth)?);
                    Ok(())
                }
                ("items", _) => {
                    fields.unclear = true;
                    ahead.skip(value)
                }
                _ => ahead.field(&mut fields, key, value),
            }
        })?;
        let is_object = fields.is_object;
        match (fields.list(), found.get_mut(from)) {
            (Some(list), Some((_, known))) => *known = Some(list),
            _ => found.truncate(from),
        }
        Ok(is_object)
    }

    fn field(&mut self, fields: &mut Fields, key: &str, value: Event<'t>) -> Result<(), YamlError> {
        let text = match key {
            "apiVersion" => &mut fields.api_version,
            "kind" => &mut fields.kind,
            _ => {
                fields.unclear |= key == "<<";
                return self.skip(value);
            }
        };
        let Event::Scalar(scalar, style, _, tag) = value else {
            fields.unclear = true;
            return self.skip(value);
        };
        let value = scalar::value(&scalar, style, tag.as_deref(), Position::default()).unwrap_or_default();
        fields.unclear |= text.replace(value.as_str().unwrap_or_default().to_owned()).is_some();
        Ok(())
    }

    /// Whether each of the items that have just begun has a kind, or metadata.
    fn items(&mut self, found: &mut Found, depth: usize) -> Result<bool, YamlError> {
        let mut all = true;
        loop {
            match self.next()?.0 {
                Event::SequenceEnd | Event::StreamEnd => return Ok(all),
                Event::MappingStart(_, anchor, _) => {
                    all &= self.object(found, anchor, depth.saturating_add(1))?;
                }
                other => {
                    all = false;
                    self.skip(other)?;
                }
            }
        }
    }

    /// Visits the entries of the map that has just begun; the callback consumes the rest of each value. Keys that are not strings
    /// are irrelevant.
    fn entries(
        &mut self,
        mut entry: impl FnMut(&mut Self, &str, Event<'t>, Position) -> Result<(), YamlError>,
    ) -> Result<(), YamlError> {
        loop {
            let key = match self.next()?.0 {
                Event::MappingEnd | Event::StreamEnd => return Ok(()),
                Event::Scalar(key, ..) => key,
                other => {
                    self.skip(other)?;
                    "".into()
                }
            };
            let (value, here) = self.next()?;
            entry(self, &key, value, here)?;
        }
    }

    /// Skips the rest of the node that begins with `event`.
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
            event = self.next()?.0;
        }
    }

    /// Returns the next event that is part of the document, with its position; at the end, the last event repeats.
    fn next(&mut self) -> Result<(Event<'t>, Position), YamlError> {
        loop {
            match events::next(&mut self.parser)? {
                None => return Ok((Event::StreamEnd, Position::default())),
                Some((Event::Anchor(..) | Event::Comment(..), _)) => {}
                Some(next) => return Ok(next),
            }
        }
    }
}
