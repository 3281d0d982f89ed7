//! Evaluates an AuthorizationConfiguration: which authorizers are called for a request.

use admit_policy::manifest::Document;
use admit_policy::server_config::{AccessReview, Asked, Authorizers, Turn};
use admit_policy::{EvalOptions, Keep, Recording};
use serde_json::json;

use super::super::answer::{Answer, Mistake, Place};
use super::super::examples_of_servers as examples;
use super::super::request::Texts;
use super::documents::{both, compiled, of_document, one};
use super::{Mode, Pane};

const CONFIGURATION: Pane = Pane {
    name: "configuration",
    title: "AuthorizationConfiguration",
    hint: "What kube-apiserver reads from the file of --authorization-config; nobody is called",
};
const REVIEW: Pane = Pane {
    name: "review",
    title: "What is asked",
    hint: "The spec of a SubjectAccessReview: user, groups, resourceAttributes or nonResourceAttributes",
};

pub(super) const MODE: Mode = Mode {
    name: "authorization",
    title: "Conditions of authorizers (AuthorizationConfiguration)",
    about: "Which authorizers are asked, in their order, by their matchConditions. What they would say is not known here.",
    panes: &[CONFIGURATION, REVIEW],
    examples: examples::AUTHORIZATION,
    evaluate: |texts| evaluated(texts).unwrap_or_else(Answer::mistaken),
    pictures: None,
};

fn evaluated(texts: &Texts) -> Result<Answer, Vec<Mistake>> {
    let configuration = one(texts, CONFIGURATION.name)
        .and_then(|found| compiled(found, CONFIGURATION.name, Authorizers::compile));
    let review = one(texts, REVIEW.name).and_then(review);
    let ((document, authorizers), review) = both(configuration, review)?;
    let recording = Recording::new(Keep::TRACES);
    let turns =
        authorizers.ask(&review, EvalOptions { recording: Some(&recording), ..EvalOptions::default() });
    let (expressions, coverage) = of_document(&document, authorizers.expressions(), &recording.finish());
    let rule = |(index, turn): (usize, &Turn)| {
        let path = format!("authorizers[{index}]");
        json!({
            "policy": format!("{} ({})", turn.name, turn.kind), "path": path, "verdict": turn.asked.as_str(),
            "message": turn.asked.error(), "place": Place::of(&document, &path),
        })
    };
    let rules = turns.iter().enumerate().map(rule).collect();
    Ok(Answer { rules, expressions, coverage, ..verdict(&document, &turns) })
}

fn review(document: Option<Document>) -> Result<AccessReview, Vec<Mistake>> {
    let Some(document) = document else {
        return Err(vec![Mistake::of_pane(REVIEW.name, "write what is asked, or choose an example")]);
    };
    AccessReview::read(&document.value)
        .map_err(|error| vec![Mistake::of_pane(REVIEW.name, error.to_string())])
}

fn verdict(document: &Document, turns: &[Turn]) -> Answer {
    for (index, turn) in turns.iter().enumerate() {
        match &turn.asked {
            Asked::Denied(why) => {
                let messages =
                    vec![Mistake::of_field(document, &format!("authorizers[{index}]"), why.as_str())];
                let text = format!("denied, since a condition of {} failed", turn.name);
                return Answer { messages, ..Answer::of("deny", text) };
            }
            Asked::Allowed => return Answer::of("allow", format!("{} allows everything", turn.name)),
            Asked::Called | Asked::Skipped | Asked::Failed(_) | Asked::NotReached => {}
        }
    }
    let asked: Vec<&str> =
        turns.iter().filter(|turn| turn.asked == Asked::Called).map(|turn| &*turn.name).collect();
    match asked.as_slice() {
        [] => Answer::of("unmatched", "no authorizer is asked: it is not allowed"),
        names => Answer::of("called", format!("asked in this order: {}", names.join(", "))),
    }
}
