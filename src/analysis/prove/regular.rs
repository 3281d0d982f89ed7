//! Translates regular expressions in Go's syntax to the solver's regular languages.
//!
//! The solver's characters end at `0x2FFFF`, Kubernetes' at `0x10FFFF`. A class that ends at the last code point ends at the solver's
//! last one here; a class that distinguishes characters beyond it is an error, as is a constant with such a character
//! ([`is_expressible`]). So rules can distinguish characters beyond only by equality and order, and objects with them behave like
//! objects with characters of the solver's last plane.

use admit_cel::PatternPart;

use super::literal::written_text;

/// The last character of the solver's strings.
const LAST: char = '\u{2FFFF}';

/// Reports whether the solver supports every character of a string.
pub(super) fn is_expressible(text: &str) -> bool {
    text.chars().all(|c| c <= LAST)
}

/// Returns the language of the strings in which a pattern matches somewhere; or why it cannot be translated.
pub(super) fn language(pattern: &str) -> Result<String, &'static str> {
    let part = PatternPart::of(pattern).map_err(|_| "a pattern that cannot be read")?;
    searched(&part)
}

/// Returns the language of the strings that equal this one except for the case of ASCII letters.
pub(super) fn in_any_case(text: &str) -> String {
    let parts: Vec<String> = text
        .chars()
        .map(|c| {
            let cases = [c.to_ascii_lowercase(), c.to_ascii_uppercase()];
            let cases: Vec<String> = if c.is_ascii_alphabetic() {
                cases.iter().map(|c| format!("(str.to_re {})", one(*c))).collect()
            } else {
                vec![format!("(str.to_re {})", one(c))]
            };
            union(&cases)
        })
        .collect();
    concat(&parts)
}

/// Returns the language of this string alone.
pub(super) fn exactly(text: &str) -> String {
    format!("(str.to_re {})", written_text(text))
}

/// Translates an unanchored search: anything may precede and follow, except at anchors.
fn searched(part: &PatternPart) -> Result<String, &'static str> {
    if let PatternPart::Either(parts) = part {
        let parts = parts.iter().map(searched).collect::<Result<Vec<_>, _>>()?;
        return Ok(union(&parts));
    }
    let one = std::slice::from_ref(part);
    let mut parts = match part {
        PatternPart::Concat(parts) => parts.as_slice(),
        _ => one,
    };
    let (mut open_before, mut open_after) = (true, true);
    while let [PatternPart::Start, rest @ ..] = parts {
        open_before = false;
        parts = rest;
    }
    while let [rest @ .., PatternPart::End] = parts {
        open_after = false;
        parts = rest;
    }
    // An alternative at an end may be anchored itself: `(^a|b)c`.
    if let [PatternPart::Either(alternatives), rest @ ..] = parts
        && open_before
        && alternatives.iter().any(binds)
    {
        return distributed(alternatives, &[], rest, open_after);
    }
    if let [rest @ .., PatternPart::Either(alternatives)] = parts
        && open_after
        && alternatives.iter().any(binds)
    {
        let before: Vec<PatternPart> = std::iter::once(PatternPart::Start)
            .filter(|_| !open_before)
            .chain(rest.iter().cloned())
            .collect();
        return distributed(alternatives, &before, &[], true);
    }
    let mut written = Vec::new();
    if open_before {
        written.push("re.all".to_owned());
    }
    for part in parts {
        written.push(plain(part)?);
    }
    if open_after {
        written.push("re.all".to_owned());
    }
    Ok(concat(&written))
}

/// Distributes the surrounding parts over the alternatives of a group.
fn distributed(
    alternatives: &[PatternPart],
    before: &[PatternPart],
    after: &[PatternPart],
    open_after: bool,
) -> Result<String, &'static str> {
    let mut written = Vec::new();
    for alternative in alternatives {
        let mut parts = before.to_vec();
        match alternative {
            PatternPart::Concat(inner) => parts.extend(inner.iter().cloned()),
            one => parts.push(one.clone()),
        }
        parts.extend(after.iter().cloned());
        if !open_after {
            parts.push(PatternPart::End);
        }
        written.push(searched(&PatternPart::Concat(parts))?);
    }
    Ok(union(&written))
}

/// Reports whether a part contains an anchor.
fn binds(part: &PatternPart) -> bool {
    match part {
        PatternPart::Start | PatternPart::End => true,
        PatternPart::Concat(parts) | PatternPart::Either(parts) => parts.iter().any(binds),
        PatternPart::Repeat { part, .. } => binds(part),
        PatternPart::Empty | PatternPart::Text(_) | PatternPart::OneOf(_) | PatternPart::Around => false,
    }
}

/// Translates a part without anchors or boundaries.
fn plain(part: &PatternPart) -> Result<String, &'static str> {
    Ok(match part {
        PatternPart::Empty => "(str.to_re \"\")".to_owned(),
        PatternPart::Text(text) if is_expressible(text) => format!("(str.to_re {})", written_text(text)),
        PatternPart::Text(_) => return Err("a pattern with characters beyond U+2FFFF"),
        PatternPart::OneOf(ranges) => {
            let ranges = ranges.iter().filter_map(range).collect::<Result<Vec<_>, _>>()?;
            union(&ranges)
        }
        PatternPart::Concat(parts) => concat(&parts.iter().map(plain).collect::<Result<Vec<_>, _>>()?),
        PatternPart::Either(parts) => union(&parts.iter().map(plain).collect::<Result<Vec<_>, _>>()?),
        PatternPart::Repeat { least, most, part } => repeated(&plain(part)?, *least, *most),
        PatternPart::Start | PatternPart::End => return Err("a pattern with an anchor in its middle"),
        PatternPart::Around => return Err("a pattern with line or word boundaries"),
    })
}

fn range(bounds: &(char, char)) -> Option<Result<String, &'static str>> {
    let (first, last) = *bounds;
    if last <= LAST {
        return Some(Ok(format!("(re.range {} {})", one(first), one(last))));
    }
    if last != char::MAX || first > LAST {
        return Some(Err("a pattern that tells characters beyond U+2FFFF apart"));
    }
    Some(Ok(format!("(re.range {} {})", one(first), one(LAST))))
}

fn one(c: char) -> String {
    written_text(c.encode_utf8(&mut [0; 4]))
}

fn repeated(part: &str, least: u32, most: Option<u32>) -> String {
    match (least, most) {
        (0, None) => format!("(re.* {part})"),
        (1, None) => format!("(re.+ {part})"),
        (0, Some(1)) => format!("(re.opt {part})"),
        (least, None) => format!("(re.++ ((_ re.^ {least}) {part}) (re.* {part}))"),
        (least, Some(most)) => format!("((_ re.loop {least} {most}) {part})"),
    }
}

fn concat(parts: &[String]) -> String {
    match parts {
        [] => "(str.to_re \"\")".to_owned(),
        [one] => one.clone(),
        several => format!("(re.++ {})", several.join(" ")),
    }
}

fn union(parts: &[String]) -> String {
    match parts {
        [] => "re.none".to_owned(),
        [one] => one.clone(),
        several => format!("(re.union {})", several.join(" ")),
    }
}
