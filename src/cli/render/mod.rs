//! Renders results and diagnostics for people and machines. Decides nothing.
//!
//! ```text
//! report (data) ──text, json, junit, …──► String ──print──► standard output
//! ```

pub(super) mod attack;
pub(super) mod check;
pub(super) mod coverage;
pub(super) mod diff;
pub(super) mod eval;
pub(super) mod explain;
mod github;
pub(super) mod lint;
pub(super) mod mutate;
pub(super) mod prove;
pub(super) mod releases;
pub(super) mod replay;
mod sarif;
pub(super) mod scan;
pub(super) mod states;
pub(super) mod suites;

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::OnceLock;

use clap::ValueEnum;
use serde_json::Value;

/// The output formats of commands for people or for one program.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(super) enum Output {
    #[default]
    Text,
    Json,
}

/// The values of `--color`: when results are coloured.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(super) enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

/// The choice of the command line, set once per process.
static COLOR: OnceLock<Color> = OnceLock::new();

/// Sets when results are coloured.
pub(super) fn color(choice: Color) {
    let _ = COLOR.set(choice);
}

/// Adds colours if standard output shows them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Palette {
    on: bool,
}

impl Palette {
    /// Follows the command line; by default there are no colours if `NO_COLOR` is non-empty (<https://no-color.org>), colours if
    /// `CLICOLOR_FORCE` is non-empty and not 0 (<https://bixense.com/clicolors>), and otherwise colours on a terminal.
    pub(super) fn of_stdout() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let on = match COLOR.get().copied().unwrap_or_default() {
            Color::Always => true,
            Color::Never => false,
            Color::Auto if set("NO_COLOR").is_some() => false,
            Color::Auto if set("CLICOLOR_FORCE").is_some_and(|value| value != "0") => true,
            Color::Auto => io::stdout().is_terminal(),
        };
        Self { on }
    }

    pub(super) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(super) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(super) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// The first error in writing results.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Writes results. A closed pipe, as with `head`, does not change the exit code; any other error is kept in [`lost`].
pub(super) fn print(text: &str) {
    print_bytes(text.as_bytes());
}

/// Like [`print`], for bytes that need not be UTF-8, such as paths.
pub(super) fn print_bytes(bytes: &[u8]) {
    let _ = are_read(bytes);
}

/// Writes results, and returns whether there is still a reader.
pub(super) fn is_read(text: &str) -> bool {
    are_read(text.as_bytes())
}

fn are_read(bytes: &[u8]) -> bool {
    let mut stdout = io::stdout();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => true,
        Err(error) => {
            if error.kind() != io::ErrorKind::BrokenPipe {
                LOST.get_or_init(|| error);
            }
            false
        }
    }
}

/// Returns why results could not be written, such as a full disk.
pub(super) fn lost() -> Option<&'static io::Error> {
    LOST.get()
}

/// Renders one document, indented, with a line feed at its end.
pub(super) fn json(document: &Value) -> String {
    format!("{document:#}\n")
}

/// Renders a document indented below a field; JSON strings contain no line feeds.
fn deeper(document: &Value, indented: &str) -> String {
    format!("{document:#}").replace('\n', indented)
}

/// `1 case`, `2 cases`.
pub(super) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Escapes text for XML and HTML; characters that XML 1.0 does not allow become the replacement character.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(c),
        }
    }
    out
}
