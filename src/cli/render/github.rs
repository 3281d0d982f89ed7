//! Renders workflow commands of GitHub Actions, which GitHub shows as annotations of source lines.

use std::fmt::Write as _;

use admit_policy::manifest::Position;

/// The position and the title of an annotation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'p> {
    pub(super) file: &'p str,
    pub(super) at: Position,
    pub(super) title: &'p str,
}

/// Adds one annotation; `level` is `error` or `warning`.
pub(super) fn annotate(out: &mut String, level: &str, place: Place<'_>, message: &str) {
    let Place { file, at: Position { line, column }, title } = place;
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "::{level} file={},line={line},col={column},title={}::{}",
        property(file),
        property(title),
        data(message)
    );
}

/// Escapes the message of a command, as the runner expects.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
