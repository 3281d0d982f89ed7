//! One line per denial: who wanted what, and which rule said no. Nothing of an object but its name, and of a rule's
//! message no secret that is easy to know.

use std::borrow::Cow;
use std::fmt::Write as _;

use admit_policy::decision::{Decision, Denial, Enforcement};
use admit_policy::request::Request;

/// Characters of a message; the answer has the whole.
const MAX_MESSAGE: usize = 1_024;
const HIDDEN: &str = "[redacted]";

pub(super) fn denial(request: &Request<'_>, decision: &Decision, denial: &Denial) {
    let (policy, binding, rule) = rule_of(decision).unwrap_or_default();
    tracing::info!(
        uid = %shown(&request.uid),
        operation = %request.operation,
        resource = %shown(&request.resource.group_resource()),
        subresource = %shown(&request.subresource),
        namespace = %shown(&request.namespace),
        name = %shown(&request.name),
        user = %shown(&request.user.username),
        dry_run = request.dry_run,
        policy,
        binding,
        rule,
        code = denial.status.code,
        why = %message(request, denial),
        "denied"
    );
}

/// Policy, binding and path of the first rule that denied; none where a definition did.
fn rule_of(decision: &Decision) -> Option<(&str, &str, String)> {
    decision.outcomes.iter().find_map(|outcome| {
        let rule = outcome.rules.iter().find(|rule| rule.enforced.contains(&Enforcement::Deny))?;
        Some((&*outcome.policy, outcome.binding.as_deref().unwrap_or_default(), rule.path.to_string()))
    })
}

/// A rule about a Secret may quote it, so that nothing it says is shown.
fn message(request: &Request<'_>, denial: &Denial) -> String {
    if request.kind.group.is_empty() && request.kind.kind == "Secret" {
        return HIDDEN.to_owned();
    }
    let end = denial.message.floor_char_boundary(MAX_MESSAGE);
    shown(&redacted(denial.message.get(..end).unwrap_or_default())).into_owned()
}

/// Without the user part of URLs, and without bearer tokens.
fn redacted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut hide_next = false;
    for word in text.split_inclusive(char::is_whitespace) {
        let bare = word.trim_end();
        if hide_next {
            let space = word.get(bare.len()..).unwrap_or_default();
            out.push_str(if bare.is_empty() { "" } else { HIDDEN });
            out.push_str(space);
            hide_next = bare.is_empty();
            continue;
        }
        hide_next = ["bearer", "basic"].iter().any(|scheme| {
            bare.len() >= scheme.len()
                && bare.get(bare.len() - scheme.len()..).is_some_and(|end| end.eq_ignore_ascii_case(scheme))
        });
        out.push_str(&without_credentials(word));
    }
    out
}

/// `https://user:password@host/` as `https://[redacted]@host/`.
fn without_credentials(word: &str) -> Cow<'_, str> {
    let found = word.find("://").and_then(|at| {
        let authority = word.get(at + 3..)?;
        let end = authority.find(['/', '?', '#', '"', '\'']).unwrap_or(authority.len());
        let at_sign = authority.get(..end)?.rfind('@')?;
        Some((word.get(..at + 3)?, authority.get(at_sign..)?))
    });
    found.map_or(Cow::Borrowed(word), |(front, end)| Cow::Owned(format!("{front}{HIDDEN}{end}")))
}

/// Text in which nothing moves a cursor, ends a line or turns the direction of reading.
pub(super) fn shown(text: &str) -> Cow<'_, str> {
    let hides = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    if !text.contains(hides) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if hides(c) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_easily_known_as_a_secret_is_hidden() {
        let cases = [
            ("plain text stays", "plain text stays"),
            ("see https://user:hunter2@example.com/a now", "see https://[redacted]@example.com/a now"),
            ("\"https://u:p@h\" twice ftp://x@y", "\"https://[redacted]@h\" twice ftp://[redacted]@y"),
            ("https://example.com/a@b", "https://example.com/a@b"),
            ("Authorization: Bearer abc.def ghi", "Authorization: Bearer [redacted] ghi"),
            ("authorization=basic  dXNlcg==", "authorization=basic  [redacted]"),
        ];
        for (text, expected) in cases {
            assert_eq!(redacted(text), expected);
        }
    }

    /// Row 13: log lines hold no raw control characters.
    #[test]
    fn control_and_direction_characters_are_escaped() {
        for c in [
            '\0', '\n', '\r', '\t', '\u{1b}', '\u{7f}', '\u{85}', '\u{202e}', '\u{200b}', '\u{2066}',
            '\u{feff}',
        ] {
            let text = format!("a{c}b");
            assert_eq!(shown(&text), format!("a\\u{{{:x}}}b", u32::from(c)));
        }
        assert_eq!(shown("ünï ©"), "ünï ©");
    }
}
