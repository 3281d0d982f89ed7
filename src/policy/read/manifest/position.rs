//! Maps field paths as a server names them to positions in the text, where the two differ.

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
    // A server tells conditions of authorizers as if they stood beside the webhook that has them.
    positions.find_or(moved.as_deref().unwrap_or(field), |node, segment| {
        node.child("webhook")?.child(segment).filter(|_| segment == "matchConditions")
    })
}
