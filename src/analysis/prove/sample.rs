//! Generates a string that a schema allows, without a solver: most strings have no other constraint, and solvers are slow at finding
//! one.

use admit_cel::PatternPart;
use admit_policy::schema::{self, Schema};
use admit_policy::{Pace, Path};
use serde_json::Value;

use super::regular::is_expressible;

/// The maximum length of a generated string.
const MOST: usize = 4_096;
/// The maximum nesting of patterns.
const MOST_DEPTH: usize = 64;

/// Returns a string that is valid for the schema, if one is found.
pub(super) fn text(schema: &Schema) -> Option<String> {
    let checks = &schema.checks;
    let mut candidates: Vec<String> =
        checks.enumeration.iter().filter_map(Value::as_str).take(1).map(str::to_owned).collect();
    let least = usize::try_from(checks.min_length.unwrap_or(0)).unwrap_or(0);
    if least <= MOST {
        candidates.extend([String::new(), "a".to_owned(), "a".repeat(least)]);
        candidates.extend(checks.format.as_deref().and_then(of_format).map(str::to_owned));
        candidates.push("aaaa".repeat(least.div_ceil(4)));
        if let Some(pattern) = &checks.pattern
            && let Ok(part) = PatternPart::of(pattern.text())
        {
            let mut shortest = String::new();
            if shortest_of(&part, MOST_DEPTH, &mut shortest).is_some() {
                let missing = least.saturating_sub(shortest.chars().count());
                candidates.extend([shortest.clone(), shortest + &"a".repeat(missing)]);
            }
        }
    }
    candidates.into_iter().filter(|text| is_expressible(text)).find(|text| allows(schema, text))
}

/// Reports whether a string is valid for the schema.
pub(super) fn allows(schema: &Schema, text: &str) -> bool {
    let value = Value::String(text.to_owned());
    schema::validate(&value, schema, None, &Path::Nil, &Pace::new(None)).is_empty()
}

/// Returns a string of a format.
fn of_format(format: &str) -> Option<&'static str> {
    Some(match format {
        "date-time" | "datetime" => "2000-01-01T00:00:00Z",
        "date" => "2000-01-01",
        "duration" => "1s",
        "ipv4" | "ip" => "10.0.0.1",
        "ipv6" => "::1",
        "cidr" => "10.0.0.0/8",
        "mac" => "00:00:00:00:00:00",
        "uri" => "http://a",
        "email" => "a@a.aa",
        "byte" => "YWFh",
        "uuid" | "uuid4" => "00000000-0000-4000-8000-000000000000",
        "uuid3" => "00000000-0000-3000-8000-000000000000",
        "uuid5" => "00000000-0000-5000-8000-000000000000",
        _ => return None,
    })
}

/// Returns a distinct string of a format for each number; `None` for formats with few known samples.
pub(super) fn nth_of_format(format: &str, nth: usize) -> Option<String> {
    let low = nth.rem_euclid(256);
    let high = nth.div_euclid(256).rem_euclid(256);
    Some(match format {
        "ipv4" | "ip" => format!("10.0.{high}.{low}"),
        "ipv6" => format!("fd00::{nth:x}"),
        "cidr" => format!("10.{high}.{low}.0/24"),
        "mac" => format!("00:00:00:00:{high:02x}:{low:02x}"),
        "uri" => format!("http://a{nth}"),
        "email" => format!("a{nth}@a.aa"),
        "uuid" | "uuid4" => format!("00000000-0000-4000-8000-{nth:012x}"),
        _ => return None,
    })
}

/// Appends the shortest string that a part matches, or nearly the shortest; `None` if it is too long.
fn shortest_of(part: &PatternPart, depth: usize, text: &mut String) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    match part {
        PatternPart::Empty | PatternPart::Start | PatternPart::End | PatternPart::Around => {}
        PatternPart::Text(own) => text.push_str(own),
        PatternPart::OneOf(ranges) => {
            let has = |c: char| ranges.iter().any(|(first, last)| (*first..=*last).contains(&c));
            let usual = ['a', 'A', '0', '1'].into_iter().find(|c| has(*c));
            text.push(usual.or_else(|| ranges.first().map(|(first, _)| *first))?);
        }
        PatternPart::Concat(parts) => {
            for part in parts {
                shortest_of(part, depth, text)?;
            }
        }
        PatternPart::Either(parts) => shortest_of(parts.first()?, depth, text)?,
        PatternPart::Repeat { least, part, .. } => {
            for _ in 0..*least {
                shortest_of(part, depth, text)?;
                if text.len() > MOST {
                    return None;
                }
            }
        }
    }
    (text.len() <= MOST).then_some(())
}
