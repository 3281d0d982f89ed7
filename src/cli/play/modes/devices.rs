//! Evaluates selectors of dynamic resource allocation: which devices of ResourceSlices a class, a claim or an expression selects.

use admit_policy::manifest::Document;
use admit_policy::{DeviceFeatures, Devices, EvalOptions, Keep, Recording, SelectedBy};
use serde_json::{Value, json};

use super::super::answer::{Answer, Mistake, Place};
use super::super::examples_of_servers as examples;
use super::super::request::Texts;
use super::super::shown;
use super::documents::{both, of_panes, one};
use super::{Mode, Pane};

const DEVICES: Pane = Pane {
    name: "devices",
    title: "Devices",
    hint: "ResourceSlices, DeviceClasses, ResourceClaims and ResourceClaimTemplates, divided by ---",
};
const BY: Pane = Pane {
    name: "by",
    title: "What selects",
    hint: "class, claim (NAME or NAMESPACE/NAME), request of the claim, selectors (a list of expressions)",
};
const FIELDS: [&str; 4] = ["class", "claim", "request", "selectors"];

pub(super) const MODE: Mode = Mode {
    name: "devices",
    title: "Selectors of devices (dynamic resource allocation)",
    about: "Which devices are selected, by all selectors together. Whether a device is free is not known here.",
    panes: &[DEVICES, BY],
    examples: examples::DEVICES,
    evaluate: |texts| evaluated(texts).unwrap_or_else(Answer::mistaken),
    pictures: None,
};

fn evaluated(texts: &Texts) -> Result<Answer, Vec<Mistake>> {
    let by = one(texts, BY.name).and_then(By::read);
    let (documents, by) = both(of_panes(texts, &[DEVICES.name]), by)?;
    let of_pane =
        |pane: &Pane, error: &dyn std::fmt::Display| vec![Mistake::of_pane(pane.name, error.to_string())];
    let devices = Devices::read(documents.iter().map(|document| &document.value), DeviceFeatures::default())
        .map_err(|error| of_pane(&DEVICES, &error))?;
    let recording = Recording::new(Keep::TRACES);
    let options = EvalOptions { recording: Some(&recording), ..EvalOptions::default() };
    let selected = devices.select(&by.given(), options).map_err(|error| of_pane(&BY, &error))?;
    let rules = selected.iter().map(|one| {
        let (verdict, message) = match &one.matches {
            Ok(true) => ("selected", None),
            Ok(false) => ("not selected", None),
            Err(error) => ("error", Some(error.to_string())),
        };
        json!({"policy": one.device.to_string(), "verdict": verdict, "message": message})
    });
    let rules: Vec<Value> = rules.collect();
    let failed = selected.iter().find_map(|one| one.matches.as_ref().err());
    let count = selected.iter().filter(|one| one.matches == Ok(true)).count();
    let verdict = match failed {
        Some(why) => Answer::of("error", format!("the scheduler does not go on: {why}")),
        None => Answer::of("value", format!("{count} of {} devices are selected", selected.len())),
    };
    let (expressions, coverage) = shown::all(devices.expressions(), &recording.finish(), |id| {
        let (kind, name) = (id.origin.kind(), id.origin.name());
        let is_it = |document: &&Document| {
            document.value.get("kind").and_then(Value::as_str) == Some(kind)
                && document.value.pointer("/metadata/name").and_then(Value::as_str) == Some(name)
        };
        (format!("{kind} {name}"), documents.iter().find(is_it).map(|document| Place::of(document, &id.path)))
    });
    Ok(Answer { rules, expressions, coverage, ..verdict })
}

/// What the pane names.
#[derive(Default)]
struct By {
    class: Option<String>,
    claim: Option<String>,
    request: Option<String>,
    selectors: Vec<String>,
}

impl By {
    fn read(document: Option<Document>) -> Result<Self, Vec<Mistake>> {
        let Some(document) = document else {
            return Err(vec![Mistake::of_pane(
                BY.name,
                "name a class, a claim or selectors, or choose an example",
            )]);
        };
        let Some(map) = document.value.as_object() else {
            return Err(vec![Mistake::of_field(&document, "", "must be a map, such as `class: gpu`")]);
        };
        let mut wrong = Vec::new();
        let mut is_wrong = |field: &str, why: &str| wrong.push(Mistake::of_field(&document, field, why));
        let mut by = Self::default();
        for (field, value) in map {
            let text = value.as_str().map(ToOwned::to_owned);
            match (field.as_str(), text) {
                ("class", Some(text)) => by.class = Some(text),
                ("claim", Some(text)) => by.claim = Some(text),
                ("request", Some(text)) => by.request = Some(text),
                ("selectors", _) => {
                    let texts = value.as_array().map(Vec::as_slice).unwrap_or_default();
                    by.selectors = texts.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect();
                    if by.selectors.is_empty() || by.selectors.len() != texts.len() {
                        is_wrong(field, "must be a list of expressions");
                    }
                }
                ("class" | "claim" | "request", None) => is_wrong(field, "must be a text"),
                _ => is_wrong(field, &format!("there is no such field; there are {}", FIELDS.join(", "))),
            }
        }
        if wrong.is_empty() { Ok(by) } else { Err(wrong) }
    }

    fn given(&self) -> SelectedBy<'_> {
        SelectedBy {
            class: self.class.as_deref(),
            claim: self.claim.as_deref(),
            request: self.request.as_deref(),
            selectors: &self.selectors,
        }
    }
}
