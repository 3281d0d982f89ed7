//! Renders pictures of what the rules allow.

mod dot;
mod json;
mod svg;
mod text;

pub(in crate::cli) use self::dot::dot;
pub(in crate::cli) use self::json::json;
pub(in crate::cli) use self::svg::svg;
pub(in crate::cli) use self::text::text;

use admit_analysis::states;

use crate::cli::states::Drawn;

/// A diagram each, with a blank line between them.
pub(in crate::cli) fn mermaid(drawn: &Drawn) -> String {
    let diagrams: Vec<String> = drawn.pictures.iter().map(states::mermaid).collect();
    diagrams.join("\n")
}
