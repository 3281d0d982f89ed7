//! Maps field paths as a server names them to positions in the text, where the two differ.

use admit_apimachinery::yaml::{Position, Positions};

/// Returns the position of a field, or of its closest existing ancestor.
///
/// Kubernetes' internal form, and so its messages, has fields that all versions of a definition share at the top; in the text they are
/// under each version.
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
    // A server reports conditions of authorizers as if they were next to the webhook that contains them.
    positions.find_or(moved.as_deref().unwrap_or(field), |node, segment| {
        node.child("webhook")?.child(segment).filter(|_| segment == "matchConditions")
    })
}
