//! Webhook configurations: whether a webhook is called for a request, by its rules, selectors and `matchConditions`.

use std::borrow::Cow;
use std::sync::Arc;

use admit_policy::manifest::Document;
use admit_policy::matching::Matched;
use admit_policy::suite::{self, Case, Expectation, Outcome};
use admit_policy::webhook::{Configuration, Kind, Webhook};
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
    let (((document, configuration), host), (objects, asked)) =
        both(both(configuration, host), both(objects, asked))?;
    let (new, old) = objects;
    let (request, host) = request(new, old, &asked, host)?;
    Ok(answer(&document, &configuration, &request, &host))
}

fn configuration(document: Option<Document>) -> Result<(Document, Configuration), Vec<Mistake>> {
    let Some(document) = document else {
        return Err(vec![Mistake::of_pane("webhook", "write a configuration, or choose an example")]);
    };
    let kind = match document.value.get("kind").and_then(Value::as_str) {
        Some("ValidatingWebhookConfiguration") => Kind::Validating,
        Some("MutatingWebhookConfiguration") => Kind::Mutating,
        Some(_) | None => {
            let why = "must be a ValidatingWebhookConfiguration or a MutatingWebhookConfiguration";
            return Err(vec![Mistake::of_field(&document, "kind", why)]);
        }
    };
    match Configuration::compile(kind, &document.value) {
        Ok(configuration) => Ok((document, configuration)),
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

fn answer(
    document: &Document,
    configuration: &Configuration,
    request: &Request<'_>,
    host: &Documents,
) -> Answer {
    let recording = Recording::new(Keep::TRACES);
    let decided: Vec<Asking> =
        configuration.webhooks.iter().map(|webhook| Asking::of(webhook, request, host, &recording)).collect();
    let rule = |(index, (webhook, asking)): (usize, (&Webhook, &Asking))| {
        let path = format!("webhooks[{index}]");
        json!({
            "policy": webhook.name, "path": path, "verdict": asking.verdict(), "message": asking.message(&path),
            "place": Place::of(document, &path),
        })
    };
    let rules = configuration.webhooks.iter().zip(&decided).enumerate().map(rule).collect();
    let expressions = configuration.webhooks.iter().flat_map(|webhook| webhook.conditions.expressions());
    let (expressions, coverage) = shown::all(expressions, &recording.finish(), |id| {
        let index = id.path.strip_prefix("webhooks[").and_then(|rest| rest.split_once(']'));
        let webhook = index.and_then(|(index, _)| configuration.webhooks.get(index.parse::<usize>().ok()?));
        let of = webhook.map(|webhook| format!("webhook {}", webhook.name)).unwrap_or_default();
        (of, Some(Place::of(document, &id.path)))
    });
    let refused = decided.iter().find_map(Asking::refusal);
    let called = decided.iter().filter(|asking| matches!(asking, Asking::Called)).count();
    let verdict = match (refused, called) {
        (Some(why), _) => Answer::of("deny", format!("refused, since conditions failed: {why}")),
        (None, 0) => Answer::of("unmatched", "no webhook is called"),
        (None, 1) => Answer::of("called", "1 webhook is called"),
        (None, many) => Answer::of("called", format!("{many} webhooks are called")),
    };
    Answer { rules, expressions, coverage, ..verdict }
}

/// Whether a webhook is called.
enum Asking {
    Called,
    /// Rules or selectors do not match, each with its field.
    Unmatched(Vec<(String, String)>),
    /// A condition is false, or one failed that may.
    Skipped,
    Refused(String),
}

impl Asking {
    fn of(webhook: &Webhook, request: &Request<'_>, host: &Documents, recording: &Recording) -> Self {
        let matching = &webhook.matching;
        if matching.rules.is_empty() {
            return Self::Unmatched(vec![(
                "rules".to_owned(),
                "there are none: it is never called".to_owned(),
            )]);
        }
        match matching.matches(request, host) {
            Ok(Some(matched)) => Self::by_conditions(webhook, request, &matched, host, recording),
            Ok(None) => {
                let misses = matching.misses(request, host, "");
                let field = |field: String| field.trim_start_matches('.').replace("resourceRules", "rules");
                Self::Unmatched(misses.into_iter().map(|miss| (field(miss.field), miss.reason)).collect())
            }
            Err(error) => Self::Refused(error.to_string()),
        }
    }

    fn by_conditions(
        webhook: &Webhook,
        request: &Request<'_>,
        matched: &Matched<'_>,
        host: &Documents,
        recording: &Recording,
    ) -> Self {
        let options = EvalOptions { recording: Some(recording), ..EvalOptions::default() };
        match webhook.conditions.hold_with(request, matched, host, options) {
            Ok(true) => Self::Called,
            Ok(false) => Self::Skipped,
            Err(error) => Self::Refused(error.to_string()),
        }
    }

    fn verdict(&self) -> &'static str {
        match self {
            Self::Called => "called",
            Self::Unmatched(_) => "unmatched",
            Self::Skipped => "skipped",
            Self::Refused(_) => "error",
        }
    }

    fn message(&self, path: &str) -> Option<String> {
        match self {
            Self::Called => None,
            Self::Unmatched(misses) => {
                let said = misses.iter().map(|(field, reason)| format!("{path}.{field}: {reason}"));
                Some(said.collect::<Vec<_>>().join("\n"))
            }
            Self::Skipped => Some("a condition does not hold: it is not called".to_owned()),
            Self::Refused(why) => Some(why.clone()),
        }
    }

    fn refusal(&self) -> Option<Cow<'_, str>> {
        if let Self::Refused(why) = self { Some(why.into()) } else { None }
    }
}
