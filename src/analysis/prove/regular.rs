//! Patterns in Go's syntax as regular languages of the solver.
//!
//! The solver's characters end at `0x2FFFF`, Kubernetes' at `0x10FFFF`. A class that ends at the last character ends here
//! at the solver's last; one that tells characters beyond apart is refused, as a constant with such a character is
//! ([`is_expressible`]). Then no rule tells the characters beyond from one another but by equality and order, so that an
//! object with them behaves as one with as many others of the last plane that the solver has.

use admit_cel::PatternPart;

use super::literal::written_text;

/// The last character of the solver's strings.
const LAST: char = '\u{2FFFF}';

/// Whether every character is one that the solver has.
pub(super) fn is_expressible(text: &str) -> bool {
    text.chars().all(|c| c <= LAST)
}

/// The texts in which a pattern is found, as a term of the solver's language of patterns; or why there is none.
pub(super) fn language(pattern: &str) -> Result<String, &'static str> {
    let part = PatternPart::of(pattern).map_err(|_| "a pattern that cannot be read")?;
    searched(&part)
}

/// The texts that are this one but for the case of its ASCII letters.
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

/// This text alone.
pub(super) fn exactly(text: &str) -> String {
    format!("(str.to_re {})", written_text(text))
}

/// The part with anything around it, but where it is bound to an end.
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
    // A group at an end may be bound itself: `(^a|b)c`.
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

/// A group written out: each alternative with what is around the group.
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

/// Whether it asks for an end of the text.
fn binds(part: &PatternPart) -> bool {
    match part {
        PatternPart::Start | PatternPart::End => true,
        PatternPart::Concat(parts) | PatternPart::Either(parts) => parts.iter().any(binds),
        PatternPart::Repeat { part, .. } => binds(part),
        PatternPart::Empty | PatternPart::Text(_) | PatternPart::OneOf(_) | PatternPart::Around => false,
    }
}

/// A part that looks at nothing but its own characters.
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
        PatternPart::Start | PatternPart::End => return Err("a pattern bound to an end in its middle"),
        PatternPart::Around => return Err("a pattern that looks at lines or words"),
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
