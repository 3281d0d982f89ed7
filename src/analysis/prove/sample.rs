//! A text that a schema allows, without a solver: of most texts nothing else is asked, and solvers are slow at finding one.

use admit_cel::PatternPart;
use admit_policy::schema::{self, Schema};
use admit_policy::{Pace, Path};
use serde_json::Value;

use super::regular::is_expressible;

/// Longest text that is made.
const MOST: usize = 4_096;
/// Depth of patterns.
const MOST_DEPTH: usize = 64;

/// A text that is valid for the schema, if one is found.
pub(super) fn text(schema: &Schema) -> Option<String> {
    let checks = &schema.checks;
    let mut candidates: Vec<String> =
        checks.enumeration.iter().filter_map(Value::as_str).take(1).map(str::to_owned).collect();
    let least = usize::try_from(checks.min_length.unwrap_or(0)).unwrap_or(0);
    if least <= MOST {
        candidates.extend([String::new(), "a".to_owned(), "a".repeat(least)]);
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
    let pace = Pace::new(None);
    candidates.into_iter().filter(|text| is_expressible(text)).find(|text| {
        let value = Value::String(text.clone());
        schema::validate(&value, schema, None, &Path::Nil, &pace).is_empty()
    })
}

/// Appends the shortest text that a part matches, or one that is nearly so; none where it is too long.
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
