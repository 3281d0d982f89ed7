//! The events of a YAML text, each with where it begins.

use granit_parser::{Event, Marker, Options, Parser, Span, StrInput};

use super::position::Position;
use super::tree::YamlError;
use crate::bounded::shorten;

/// Bytes of a mistake that are told: it may quote the text.
const MAX_MISTAKE: usize = 512;

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
    Ok(next_with_span(parser)?.map(|(event, span)| (event, position(&span.start))))
}

/// One event, and from where to where it stands; none at the end of the text.
pub(super) fn next_with_span<'t>(
    parser: &mut Parser<'t, StrInput<'t>>,
) -> Result<Option<(Event<'t>, Span)>, YamlError> {
    let Some(next) = parser.next_event() else { return Ok(None) };
    next.map(Some).map_err(|error| {
        let mut message = format!("not YAML: {}", error.info());
        shorten(&mut message, MAX_MISTAKE);
        YamlError::new(position(error.marker()), message)
    })
}

pub(super) fn position(marker: &Marker) -> Position {
    Position { line: marker.line(), column: marker.col().saturating_add(1) }
}
