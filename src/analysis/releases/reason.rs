//! Why a release refuses: the cause of a refusal, and the release that brought what it misses.

use admit_cel::{is_identifier, overloads};

use super::boundaries::{function_of, offered_from};
use super::judge::Cause;
use super::{Release, facts};

/// What kind of refusal a server's words are.
pub(super) fn cause(message: &str) -> Cause {
    let is_of_cost = ["exceeds budget", "exceeding cost limit"].iter().any(|words| message.contains(words));
    if is_of_cost { Cause::TooCostly } else { Cause::Refused }
}

/// From which release on, after this one, there is what the words say is missing.
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

/// Of a function, or of the namespace of functions, after a release that misses it.
fn next_offer(name: &str, release: Release) -> Option<Release> {
    let bare = name.rsplit('.').next().unwrap_or(name);
    let in_namespace = format!("{name}.");
    let rows = overloads()
        .filter(|row| function_of(row.signature) == bare || row.signature.starts_with(&in_namespace));
    rows.map(offered_from).filter(|from| *from > release).min()
}
