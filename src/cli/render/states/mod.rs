//! Renders pictures of which states may follow one another.

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

/// Renders one diagram per picture, separated by blank lines.
pub(in crate::cli) fn mermaid(drawn: &Drawn) -> String {
    let diagrams: Vec<String> = drawn.pictures.iter().map(states::mermaid).collect();
    diagrams.join("\n")
}
