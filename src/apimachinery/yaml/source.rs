//! Reads the events of a YAML text and assembles them into documents: all at once, or one after the other.

use granit_parser::{Event, Marker, Options, Parser, StrInput};

use super::ahead::{Ahead, ListOf};
use super::builder::Builder;
use super::position::Position;
use super::tree::{Tree, YamlError};
use crate::bounded::shorten;

/// Bytes of a mistake that are told: it may quote the text.
const MAX_MISTAKE: usize = 512;

/// The documents of a text one after the other, an empty one null, and the items of lists, and of lists within them, before the
/// list that has them no more.
/// The bounds hold for each of these by itself: whoever lets one go before asking for the next has memory for any number of
/// them. After a mistake there are no more.
pub fn pieces(text: &str) -> impl Iterator<Item = Result<Piece, YamlError>> + use<'_> {
    Trees { text, source: Source::new(text, true), ahead: None, document: 0, lists: Vec::new(), over: false }
}

struct Trees<'t> {
    text: &'t str,
    source: Source<'t>,
    /// Made where the first list is met.
    ahead: Option<Ahead<'t>>,
    /// Documents that have begun.
    document: usize,
    /// Those whose items are being read, each within the one before.
    lists: Vec<ListOf>,
    over: bool,
}

/// A document, or an item of a list.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Itself.
    pub tree: Tree,
    /// Of an item, of what list.
    pub list: Option<ListOf>,
}

impl<'t> Trees<'t> {
    fn piece(&mut self) -> Result<Option<Piece>, YamlError> {
        while let Some((event, here)) = next(&mut self.source.parser)? {
            if matches!(event, Event::DocumentStart(..)) {
                self.document = self.document.saturating_add(1);
            }
            let list = match event {
                Event::SequenceStart(_, 0, _) if self.source.builder.opens_items() => {
                    self.ahead.get_or_insert_with(|| Ahead::new(self.text)).list(self.document, here)?
                }
                _ => None,
            };
            self.source.builder.event(event, here)?;
            if let Some(list) = list {
                self.source.builder.let_items_go();
                self.lists.push(list);
            }
            if let Some(tree) = self.source.builder.trees.pop() {
                self.lists.truncate(self.source.builder.renew());
                return Ok(Some(Piece { tree, list: self.lists.last().cloned() }));
            }
        }
        Ok(None)
    }
}

impl Iterator for Trees<'_> {
    type Item = Result<Piece, YamlError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let piece = self.piece().transpose();
        self.over = !matches!(piece, Some(Ok(_)));
        piece
    }
}

/// The events of a text, and what has been made of them.
pub(super) struct Source<'t> {
    parser: Parser<'t, StrInput<'t>>,
    pub(super) builder: Builder,
}

impl<'t> Source<'t> {
    pub(super) fn new(text: &'t str, placed: bool) -> Self {
        Self { parser: parser(text), builder: Builder::new(text.len(), placed) }
    }

    /// Takes one event; whether there was one, and the text is not over.
    pub(super) fn step(&mut self) -> Result<bool, YamlError> {
        let Some((event, here)) = next(&mut self.parser)? else { return Ok(false) };
        self.builder.event(event, here)?;
        Ok(true)
    }
}

pub(super) fn parser(text: &str) -> Parser<'_, StrInput<'_>> {
    // The parser forgets that a collection may be a key after 1,024 characters, as Go's does: until then it keeps all of it.
    let mut options = Options::default();
    options.emit_comments = false;
    options.emit_anchor_events = true;
    options.emit_unresolved_aliases = true;
    Parser::new_from_str_with_options(text, options)
}

/// One event, and where it begins; none at the end of the text.
pub(super) fn next<'t>(
    parser: &mut Parser<'t, StrInput<'t>>,
) -> Result<Option<(Event<'t>, Position)>, YamlError> {
    let Some(next) = parser.next_event() else { return Ok(None) };
    let (event, span) = next.map_err(|error| {
        let mut message = format!("not YAML: {}", error.info());
        shorten(&mut message, MAX_MISTAKE);
        YamlError::new(position(error.marker()), message)
    })?;
    Ok(Some((event, position(&span.start))))
}

fn position(marker: &Marker) -> Position {
    Position { line: marker.line(), column: marker.col().saturating_add(1) }
}
