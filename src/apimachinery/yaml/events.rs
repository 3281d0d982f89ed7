//! Reads the events of a YAML text with their positions.

use granit_parser::{Event, Marker, Options, Parser, Span, StrInput};

use super::position::Position;
use super::tree::YamlError;
use crate::bounded::shorten;

/// The longest error message in bytes, since it may quote the text.
const MAX_MISTAKE: usize = 512;

pub(super) fn parser(text: &str) -> Parser<'_, StrInput<'_>> {
    // Like Go's, the parser stops treating a collection as a possible key after 1,024 characters; until then it buffers it.
    let mut options = Options::default();
    options.emit_comments = false;
    options.emit_anchor_events = true;
    options.emit_unresolved_aliases = true;
    Parser::new_from_str_with_options(text, options)
}

/// Returns the next event with its position; None at the end of the text.
pub(super) fn next<'t>(
    parser: &mut Parser<'t, StrInput<'t>>,
) -> Result<Option<(Event<'t>, Position)>, YamlError> {
    Ok(next_with_span(parser)?.map(|(event, span)| (event, position(&span.start))))
}

/// Returns the next event with its span; None at the end of the text.
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
