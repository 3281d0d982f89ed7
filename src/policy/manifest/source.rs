//! The events of a YAML text, one by one, and the documents that come of them: all at a time, or one after the other.

use granit_parser::{Event, Marker, Options, Parser, StrInput};

use super::position::Position;
use super::yaml::{Builder, Tree, YamlError};
use crate::bounded::shorten;

/// Bytes of a mistake that are told: it may quote the text.
const MAX_MISTAKE: usize = 512;

/// The documents of a text one after the other, an empty one null. The bounds hold for each document by itself: whoever lets one
/// go before asking for the next has memory for any number of them. After a mistake there are no more.
pub(super) struct Trees<'t> {
    source: Source<'t>,
    over: bool,
}

impl<'t> Trees<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { source: Source::new(text, true), over: false }
    }

    fn tree(&mut self) -> Result<Option<Tree>, YamlError> {
        while let Some(step) = self.source.step()? {
            if step == Step::DocumentEnd {
                self.source.builder.renew();
                if let Some(tree) = self.source.builder.trees.pop() {
                    return Ok(Some(tree));
                }
            }
        }
        Ok(None)
    }
}

impl Iterator for Trees<'_> {
    type Item = Result<Tree, YamlError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let tree = self.tree().transpose();
        self.over = !matches!(tree, Some(Ok(_)));
        tree
    }
}

/// The events of a text, and what has been made of them.
pub(super) struct Source<'t> {
    parser: Parser<'t, StrInput<'t>>,
    pub(super) builder: Builder,
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Step {
    DocumentEnd,
    Other,
}

impl<'t> Source<'t> {
    pub(super) fn new(text: &'t str, placed: bool) -> Self {
        // The parser forgets that a collection may be a key after 1,024 characters, as Go's does: until then it keeps all of it.
        let mut options = Options::default();
        options.emit_comments = false;
        options.emit_anchor_events = true;
        options.emit_unresolved_aliases = true;
        Self {
            parser: Parser::new_from_str_with_options(text, options),
            builder: Builder::new(text.len(), placed),
        }
    }

    /// Takes one event; none at the end of the text.
    pub(super) fn step(&mut self) -> Result<Option<Step>, YamlError> {
        let Some(next) = self.parser.next_event() else { return Ok(None) };
        let (event, span) = next.map_err(|error| {
            let mut message = format!("not YAML: {}", error.info());
            shorten(&mut message, MAX_MISTAKE);
            YamlError::new(position(error.marker()), message)
        })?;
        let step = if matches!(event, Event::DocumentEnd) { Step::DocumentEnd } else { Step::Other };
        self.builder.event(event, position(&span.start))?;
        Ok(Some(step))
    }
}

fn position(marker: &Marker) -> Position {
    Position { line: marker.line(), column: marker.col().saturating_add(1) }
}
