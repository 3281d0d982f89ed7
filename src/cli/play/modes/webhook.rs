//! Evaluates webhook configurations: whether a webhook is called for a request, by its rules, selectors and `matchConditions`.

use std::sync::Arc;

use admit_policy::manifest::Document;
use admit_policy::matching::Miss;
use admit_policy::suite::{self, Case, Expectation, Outcome};
use admit_policy::webhook::{Called, Turn, Webhooks};
use admit_policy::{Documents, EvalOptions, Keep, LoadOptions, Operation, PolicySet, Recording, Request};
use serde_json::{Value, json};

use super::super::answer::{Answer, Mistake, Place};
use super::super::asked::Asked;
use super::super::request::Texts;
use super::super::{examples, shown};
use super::documents::{both, of_panes, one};
use super::{DEFINITIONS, Mode, NEW, OLD, Pane, REQUEST};
use crate::cli::{conversion, load};

const CONFIGURATION: Pane = Pane {
    name: "webhook",
    title: "Webhook configuration",
    hint: "A ValidatingWebhookConfiguration or MutatingWebhookConfiguration; nobody is called",
};

const KINDS: [&str; 2] = ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"];

pub(super) const MODE: Mode = Mode {
    name: "webhook",
    title: "matchConditions of webhooks",
    about: "Whether webhooks would be called for the request: by rules and selectors, and then by their conditions. Nobody is called.",
    panes: &[CONFIGURATION, NEW, OLD, REQUEST, DEFINITIONS],
    examples: examples::WEBHOOK,
    evaluate: |texts| evaluated(texts).unwrap_or_else(Answer::mistaken),
    pictures: None,
};

fn evaluated(texts: &Texts) -> Result<Answer, Vec<Mistake>> {
    let configuration = one(texts, "webhook").and_then(configuration);
    let host = of_panes(texts, &["crd"]).and_then(|definitions| host(&definitions));
    let objects = both(one(texts, "new"), one(texts, "old"));
    let asked = Asked::read(texts.get("request"));
    let (((document, webhooks), host), (objects, asked)) =
        both(both(configuration, host), both(objects, asked))?;
    let (new, old) = objects;
    let (request, host) = request(new, old, &asked, host)?;
    Ok(answer(&document, &webhooks, &request, &host))
}

fn configuration(document: Option<Document>) -> Result<(Document, Webhooks), Vec<Mistake>> {
    let Some(document) = document else {
        return Err(vec![Mistake::of_pane("webhook", "write a configuration, or choose an example")]);
    };
    if !KINDS.iter().any(|kind| document.value.get("kind").and_then(Value::as_str) == Some(kind)) {
        return Err(vec![Mistake::of_field(
            &document,
            "kind",
            format!("must be a {}", KINDS.join(" or a ")),
        )]);
    }
    match Webhooks::compile([&document.value]) {
        Ok(webhooks) => Ok((document, webhooks)),
        Err(errors) => Err(errors.iter().map(|error| document.error(error).into()).collect()),
    }
}

/// What is known of kinds and namespaces.
fn host(definitions: &[Document]) -> Result<Documents, Vec<Mistake>> {
    let set = PolicySet::load_with(definitions, LoadOptions::default())
        .map_err(|errors| errors.into_iter().map(Mistake::from).collect::<Vec<_>>())?;
    Ok(load::as_of_now(set).converting(conversion::offline).documents().clone())
}

/// The request, and what is there while it is decided.
fn request(
    new: Option<Document>,
    old: Option<Document>,
    asked: &Asked,
    mut host: Documents,
) -> Result<(Request<'static>, Documents), Vec<Mistake>> {
    let operation = match (&new, &old) {
        (Some(_), None) => Operation::Create,
        (Some(_), Some(_)) => Operation::Update,
        (None, Some(_)) => Operation::Delete,
        (None, None) => return Err(vec![Mistake::of_pane("new", "write an object, or choose an example")]),
    };
    let options = &asked.options;
    let value = |document: Document| Arc::new(document.value);
    let case = Case {
        name: String::new(),
        policies: Vec::new(),
        operation: options.operation.unwrap_or(operation),
        resource: None,
        subresource: options.subresource.map(|part| part.as_str().to_owned()).unwrap_or_default(),
        namespace: Some(asked.namespace.clone()),
        request_name: None,
        object: new.map(value),
        old_object: old.map(value),
        options: None,
        dry_run: false,
        user: options.user.clone(),
        existing: Vec::new(),
        access: options.access.clone(),
        now: None,
        expect: Expectation {
            outcome: Outcome::default(),
            message: None,
            reason: None,
            field: None,
            annotations: Vec::new(),
            object: None,
            idempotent: false,
        },
    };
    let request = suite::request(&case, &host);
    if options.namespace_labels.is_empty() {
        host.ensure_namespace(&asked.namespace);
    } else {
        let labels: serde_json::Map<String, Value> =
            options.namespace_labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        host.insert(Arc::new(json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": asked.namespace, "labels": labels},
        })));
    }
    if let Some(answers) = &options.access {
        host.set_answers(Arc::clone(answers));
    }
    Ok((request, host))
}

fn answer(document: &Document, webhooks: &Webhooks, request: &Request<'_>, host: &Documents) -> Answer {
    let recording = Recording::new(Keep::TRACES);
    let options = EvalOptions { recording: Some(&recording), ..EvalOptions::default() };
    let turns = webhooks.ask(request, host, options);
    let misses = webhooks.misses(request, host);
    let rule = |(index, (turn, misses)): (usize, (&Turn, &Vec<Miss>))| {
        let path = format!("webhooks[{index}]");
        json!({
            "policy": turn.webhook, "path": path, "verdict": turn.called.as_str(),
            "message": message(&turn.called, misses, &path), "place": Place::of(document, &path),
        })
    };
    let rules = turns.iter().zip(&misses).enumerate().map(rule).collect();
    let budgets = shown::budgets(recording.spent(), |_| "of the costliest webhook".to_owned());
    let (expressions, coverage) = shown::all(webhooks.expressions(), &recording.finish(), |id| {
        let index = id.path.strip_prefix("webhooks[").and_then(|rest| rest.split_once(']'));
        let turn = index.and_then(|(index, _)| turns.get(index.parse::<usize>().ok()?));
        let of = turn.map(|turn| format!("webhook {}", turn.webhook)).unwrap_or_default();
        (of, Some(Place::of(document, &id.path)))
    });
    let refused = turns.iter().find_map(|turn| match &turn.called {
        Called::Refused(why) => Some(why),
        Called::Called | Called::Unmatched | Called::Skipped { .. } | Called::Ignored(_) => None,
    });
    let called = turns.iter().filter(|turn| turn.called == Called::Called).count();
    let verdict = match (refused, called) {
        (Some(why), _) => Answer::of("deny", format!("refused, since conditions failed: {why}")),
        (None, 0) => Answer::of("unmatched", "no webhook is called"),
        (None, 1) => Answer::of("called", "1 webhook is called"),
        (None, many) => Answer::of("called", format!("{many} webhooks are called")),
    };
    Answer { rules, budgets, expressions, coverage, ..verdict }
}

fn message(called: &Called, misses: &[Miss], path: &str) -> Option<String> {
    match called {
        Called::Called => None,
        Called::Unmatched => {
            let said = misses.iter().map(|Miss { field, reason }| format!("{path}.{field}: {reason}"));
            Some(said.collect::<Vec<_>>().join("\n"))
        }
        Called::Skipped { .. } => Some("a condition does not hold: it is not called".to_owned()),
        Called::Ignored(why) => Some(format!("a condition failed, and is passed over: {why}")),
        Called::Refused(why) => Some(why.clone()),
    }
}
