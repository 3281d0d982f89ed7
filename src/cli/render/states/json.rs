//! Renders pictures of states as one JSON document.

use admit_analysis::states::{Allowance, Example, Picture, Reach, RuleText, Transition};
use serde_json::{Value, json};

use crate::cli::render;
use crate::cli::states::Drawn;

/// Renders `{"pictures", "differences"}`; `admit schema states` prints the schema.
pub(in crate::cli) fn json(drawn: &Drawn) -> String {
    let pictures: Vec<Value> = drawn.pictures.iter().map(picture).collect();
    let differences: Vec<Value> = drawn
        .differences
        .iter()
        .map(|difference| json!({"text": difference.to_string(), "undecided": difference.is_undecided()}))
        .collect();
    render::json(&json!({"pictures": pictures, "differences": differences}))
}

fn picture(picture: &Picture) -> Value {
    let states: Vec<Value> = picture
        .states
        .iter()
        .map(|state| {
            let reach = match state.reach {
                Reach::Reached => "reached",
                Reach::Unreachable => "unreachable",
                Reach::Undecided => "undecided",
            };
            json!({"name": state.name, "reach": reach})
        })
        .collect();
    let dead_ends: Vec<&str> = picture.dead_ends().map(|(name, _)| name).collect();
    json!({
        "apiVersion": picture.kind.api_version(),
        "kind": picture.kind.kind,
        "field": picture.subject.to_string(),
        "state": picture.subject.expression(),
        "where": picture.only,
        "limit": picture.limit.as_ref().map(ToString::to_string),
        "subresource": if picture.in_status { "status" } else { "" },
        "states": states,
        "transitions": picture.transitions.iter().map(transition).collect::<Vec<Value>>(),
        "deadEnds": dead_ends,
        "tried": picture.tried,
        "interrupted": picture.interrupted,
    })
}

fn transition(transition: &Transition) -> Value {
    let none: &[RuleText] = &[];
    let (verdict, rules, shown, user, tried) = match &transition.verdict {
        Allowance::Allowed { example, conditions, user, always } => {
            let verdict = if *always { "always" } else { "allowed" };
            (verdict, conditions.as_slice(), Some(example), user.as_deref(), None)
        }
        Allowance::Otherwise { example, tried } => ("otherwise", none, Some(example), None, Some(tried)),
        Allowance::Forbidden { rules } => ("forbidden", rules.as_slice(), None, None, None),
        Allowance::Undecided { tried, rules } => ("undecided", rules.as_slice(), None, None, Some(tried)),
    };
    let rules: Vec<Value> = rules
        .iter()
        .map(|RuleText { origin, message, text }| json!({"origin": origin, "message": message, "expression": text}))
        .collect();
    json!({
        "from": transition.from,
        "to": transition.to,
        "verdict": verdict,
        "rules": rules,
        "user": user,
        "example": shown.map(example),
        "tried": tried,
    })
}

fn example(Example { old, new, user }: &Example) -> Value {
    json!({"old": old, "new": new, "user": user})
}
