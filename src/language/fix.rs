//! Turns the suggestion of an error message ("did you mean") into an edit.

use std::ops::Range;

use crate::text::Text;

/// The text before the suggested name, in an error message or its help.
const MEANT: &str = "did you mean `";
/// The text before an unknown name in a compiler's message.
const UNKNOWN: [&str; 2] = ["undeclared reference to '", "undefined field '"];

/// Returns the byte range of the wrong name, and the suggested one. `range` is that of the diagnostic.
pub(crate) fn fix(
    text: &Text,
    range: &Range<usize>,
    message: &str,
    help: &str,
) -> Option<(Range<usize>, String)> {
    let meant = [help, message].into_iter().find_map(|told| between(told, MEANT, '`'))?;
    let written = text.as_str().get(range.clone()).unwrap_or_default();
    let named = UNKNOWN.iter().find_map(|before| between(message, before, '\''));
    let wrong = named.or_else(|| between(message, "`", '`').filter(|name| *name != meant)).unwrap_or(written);
    let end = text.end_of(text.position(range.start).line);
    let line = text.as_str().get(range.start..end)?;
    let at = whole(line, wrong)?;
    let start = range.start.saturating_add(at);
    Some((start..start.saturating_add(wrong.len()), meant.to_owned()))
}

fn between<'t>(text: &'t str, before: &str, behind: char) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(behind).map(|(name, _)| name)
}

/// Finds a name as a whole word in a line.
fn whole(line: &str, name: &str) -> Option<usize> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = line.match_indices(name).map(|(at, _)| at);
    found.find(|at| {
        let (before, behind) = (line.get(..*at), line.get(at.saturating_add(name.len())..));
        !name.is_empty()
            && before.is_some_and(|before| !before.ends_with(is_name))
            && behind.is_some_and(|behind| !behind.starts_with(is_name))
    })
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn names_are_whole_words() {
        assert_eq!(whole("objects.object", "object"), Some(8));
        assert_eq!(whole("objects", "object"), None);
        assert_eq!(whole("a", ""), None);
    }
}
