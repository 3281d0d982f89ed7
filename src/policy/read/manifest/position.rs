//! The position of every field of a document in its text: a tree of the same shape as the document.

use admit_apimachinery::yaml::{Position, Positions};

/// Follows a field path as far as the document goes.
///
/// What all versions of a definition share stands at the top of Kubernetes' internal form, and so in its messages;
/// in the text it stands under each version.
pub(super) fn find(positions: &Positions, field: &str) -> Position {
    const SHARED: [(&str, &str); 4] = [
        ("validation", "schema"),
        ("subresources", "subresources"),
        ("additionalPrinterColumns", "additionalPrinterColumns"),
        ("selectableFields", "selectableFields"),
    ];
    let moved = field.strip_prefix("spec.").and_then(|below| {
        let (_, name) = SHARED.into_iter().find(|(shared, _)| below.starts_with(shared))?;
        let (_, rest) = below.split_at_checked(below.find(['.', '['])?)?;
        let versions = positions.child("spec")?.child("versions")?;
        versions.item(0)?.child(name)?;
        Some(format!("spec.versions[0].{name}{rest}"))
    });
    let mut node = positions;
    for segment in segments(moved.as_deref().unwrap_or(field)) {
        let here = node.child(segment).or_else(|| node.item(segment.parse().ok()?));
        // A server tells conditions of authorizers as if they stood beside the webhook that has them.
        let in_webhook = || node.child("webhook")?.child(segment).filter(|_| segment == "matchConditions");
        let below = here.or_else(in_webhook);
        let Some(below) = below else { break };
        node = below;
    }
    node.here()
}

/// `spec.list[0].map[a.b].c` in parts: dots divide outside of brackets only.
fn segments(field: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    field
        .split(move |c: char| match c {
            '[' => {
                depth = depth.saturating_add(1);
                depth == 1
            }
            ']' => {
                depth = depth.saturating_sub(1);
                depth == 0
            }
            '.' => depth == 0,
            _ => false,
        })
        .filter(|segment| !segment.is_empty())
}
