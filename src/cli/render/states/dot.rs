//! Renders pictures of states as graphs for Graphviz.

use std::fmt::Write as _;

use admit_analysis::states::Allowance;

use crate::cli::states::Drawn;

/// Renders one graph per picture.
pub(in crate::cli) fn dot(drawn: &Drawn) -> String {
    let mut out = String::new();
    for picture in &drawn.pictures {
        let _ = writeln!(out, "digraph {} {{", quoted(&format!("{} {}", picture.kind.kind, picture.subject)));
        out.push_str("  node [shape=box, style=rounded]\n  \"[*]\" [shape=point, label=\"\"]\n");
        for transition in picture.allowed() {
            let Allowance::Allowed { conditions, user, .. } = &transition.verdict else { continue };
            let from = transition.from.as_deref().map_or_else(|| quoted("[*]"), quoted);
            let by = user.iter().map(|user| format!("by {user}"));
            let labels: Vec<String> =
                by.chain(conditions.iter().map(|rule| format!("if {}", rule.message))).collect();
            let label = if labels.is_empty() {
                String::new()
            } else {
                format!(" [label={}]", quoted(&labels.join("\n")))
            };
            let _ = writeln!(out, "  {from} -> {}{label}", quoted(&transition.to));
        }
        for (name, _) in picture.dead_ends() {
            let _ = writeln!(out, "  {} [peripheries=2]", quoted(name));
        }
        out.push_str("}\n");
    }
    out
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
