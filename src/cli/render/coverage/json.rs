//! Renders expressions as JSON for a page: divided into parts, each with the outcomes that it never had.

use admit_cel::{PER_CALL_LIMIT, Span};
use serde_json::{Value, json};

use super::{Covered, missed, missing, of_limit, summary};

/// Renders `{"parts": [{"text", "missed"}], "missed", "evaluations", "cost", "limit", "percent"}`: the parts make up the text,
/// and `percent` is the share of the limit on a logarithmic scale.
pub(in crate::cli) fn expression(expression: &Covered) -> Value {
    json!({
        "parts": parts(expression),
        "missed": missed(expression),
        "evaluations": expression.evaluations,
        "cost": expression.cost,
        "limit": PER_CALL_LIMIT,
        "percent": of_limit(expression.cost, PER_CALL_LIMIT),
    })
}

/// Returns a sentence about how many expressions were evaluated, and how many of their branches were taken.
pub(in crate::cli) fn of_expressions(expressions: &[Covered]) -> String {
    summary(expressions)
}

/// Splits the text at the ends of all parts with a missed outcome.
fn parts(expression: &Covered) -> Vec<Value> {
    let text = expression.text.as_str();
    if expression.evaluations == 0 {
        return vec![json!({"text": text, "missed": ["never evaluated"]})];
    }
    let missed: Vec<_> =
        expression.branches.iter().filter(|(_, hit)| !hit).map(|(branch, _)| branch).collect();
    let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let mut cuts: Vec<u32> = missed.iter().flat_map(|branch| [branch.span.start, branch.span.end]).collect();
    cuts.extend([0, end]);
    cuts.sort_unstable();
    cuts.dedup();
    let pieces = cuts.iter().zip(cuts.iter().skip(1)).map(|(start, end)| Span { start: *start, end: *end });
    pieces
        .map(|piece| {
            let is_around = |span: Span| span.start <= piece.start && piece.end <= span.end;
            let said = missed.iter().filter(|branch| is_around(branch.span)).map(|branch| missing(branch));
            json!({"text": piece.of(text), "missed": said.collect::<Vec<_>>()})
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use admit_cel::{Branch, BranchKind};

    use super::*;

    #[test]
    fn parts_make_up_the_text_and_say_what_did_not_happen() {
        let branch = |start, end, when| {
            (Branch { kind: BranchKind::And, when: Some(when), span: Span { start, end } }, false)
        };
        let mut covered = Covered {
            file: String::new(),
            line: 1,
            path: String::new(),
            text: "a && (b || c)".to_owned(),
            evaluations: 1,
            cost: 3,
            branches: vec![branch(6, 12, true), branch(11, 12, false)],
        };
        let expected = json!([
            {"text": "a && (", "missed": []},
            {"text": "b || ", "missed": ["term never true"]},
            {"text": "c", "missed": ["term never true", "term never false"]},
            {"text": ")", "missed": []},
        ]);
        assert_eq!(json!(parts(&covered)), expected);
        covered.evaluations = 0;
        assert_eq!(json!(parts(&covered)), json!([{"text": "a && (b || c)", "missed": ["never evaluated"]}]));
    }
}
