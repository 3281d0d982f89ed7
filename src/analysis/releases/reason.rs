//! Defines why a release rejects something: the possible causes, and the release that added what is missing.

use admit_cel::{is_identifier, overloads};

use super::boundaries::{function_of, offered_from};
use super::{Release, facts};

/// Why a document, or a part of it, is not accepted as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The server rejects it.
    Refused,
    /// The server rejects it because of its cost.
    TooCostly,
    /// The server does not know the kind.
    NotServed,
    /// The server takes it without this field.
    Dropped,
    /// The server takes it and does not check this format.
    Unchecked,
}

impl Cause {
    /// Whether the release does not take the document.
    #[must_use]
    pub const fn refuses(self) -> bool {
        matches!(self, Self::Refused | Self::TooCostly | Self::NotServed)
    }

    /// Returns its name in output: `refused`, `too-costly`, `not-served`, `dropped`, `unchecked`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::TooCostly => "too-costly",
            Self::NotServed => "not-served",
            Self::Dropped => "dropped",
            Self::Unchecked => "unchecked",
        }
    }
}

/// What kind of refusal a server's words are.
pub(super) fn cause(message: &str) -> Cause {
    let is_of_cost = ["exceeds budget", "exceeding cost limit"].iter().any(|words| message.contains(words));
    if is_of_cost { Cause::TooCostly } else { Cause::Refused }
}

/// Returns the first later release that has what the message reports as missing.
pub(super) fn because(message: &str, release: Release) -> Option<String> {
    for opening in ["undeclared reference to '", "found no matching overload for '"] {
        if let Some(name) = quoted(message, opening)
            && let Some(from) = next_offer(name, release)
        {
            return Some(format!("`{name}` is offered from {from} on"));
        }
    }
    let field = quoted(message, "undefined field '")?;
    let from = facts::KEYWORD_FIELDS;
    (!is_identifier(field) && release < from)
        .then(|| format!("reserved words are names of fields from {from} on; before, write `__{field}__`"))
}

fn quoted<'m>(message: &'m str, opening: &str) -> Option<&'m str> {
    let (_, rest) = message.split_once(opening)?;
    rest.split('\'').next()
}

/// Returns the first later release that has a function, or a namespace of functions.
fn next_offer(name: &str, release: Release) -> Option<Release> {
    let bare = name.rsplit('.').next().unwrap_or(name);
    let in_namespace = format!("{name}.");
    let rows = overloads()
        .filter(|row| function_of(row.signature) == bare || row.signature.starts_with(&in_namespace));
    rows.map(offered_from).filter(|from| *from > release).min()
}
