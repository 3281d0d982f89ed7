//! Evaluates what definitions and policies decide about an object, with the code of `admit check` and `admit explain`.

use std::sync::Arc;

use admit_apimachinery::yaml;
use admit_apiserver::BuiltinKinds;
use admit_policy::apply::{self, Applied, Pair, PairError, Rehearsal, Subresource};
use admit_policy::manifest::Document;
use admit_policy::{ExpressionId, Keep, LoadOptions, Operation, Origin, PolicySet, Recorded, Recording};
use indexmap::IndexMap;
use serde_json::{Value, json};

use super::super::answer::{Answer, Changed, Mistake, Place};
use super::super::asked::Asked;
use super::super::request::Texts;
use super::super::shown;
use super::documents::{both, of_panes, one};
use crate::cli::render::{check, diff};
use crate::cli::{conversion, load};

/// Decides about the new object, compared with the old one, by the definitions and policies in the panes `definitions`.
pub(super) fn evaluated(texts: &Texts, definitions: &[&str]) -> Answer {
    Given::read(texts, definitions).and_then(Given::decided).unwrap_or_else(Answer::mistaken)
}

/// The contents of all panes, parsed and compiled.
struct Given {
    definitions: Vec<Document>,
    set: PolicySet,
    asked: Asked,
    /// The object that is written, or that is deleted.
    new: Document,
    old: Option<Document>,
    is_deletion: bool,
}

impl Given {
    fn read(texts: &Texts, panes: &[&str]) -> Result<Self, Vec<Mistake>> {
        let definitions = of_panes(texts, panes).and_then(|documents| {
            let set = PolicySet::load_with(&documents, LoadOptions::default());
            set.map(|set| (documents, load::as_of_now(set).converting(conversion::offline)))
                .map_err(|errors| errors.into_iter().map(Mistake::from).collect())
        });
        let objects = both(one(texts, "new"), one(texts, "old"));
        let asked = Asked::read(texts.get("request"));
        let (((definitions, set), objects), asked) = both(both(definitions, objects), asked)?;
        let (new, old, is_deletion) = match objects {
            (Some(new), old) => (new, old, false),
            (None, Some(old)) => (old.clone(), Some(old), true),
            (None, None) => {
                return Err(vec![Mistake::of_pane("new", "write an object, or choose an example")]);
            }
        };
        if let Some(mistake) = apply::misnamed(&new.value) {
            return Err(vec![Mistake::of_field(&new, "", mistake.to_string())]);
        }
        Ok(Self { definitions, set, asked, new, old, is_deletion })
    }

    fn decided(mut self) -> Result<Answer, Vec<Mistake>> {
        if self.is_deletion && self.asked.options.operation.is_none() {
            self.asked.options.operation = Some(Operation::Delete);
        }
        let pair = self.pair()?;
        self.fits(&pair)?;
        let recording = Recording::new(Keep::TRACES);
        let rehearsal = Rehearsal::new(&self.set, [], self.asked.options.clone()).knowing(&BuiltinKinds);
        let applied = rehearsal.apply_recorded(&pair, &recording);
        let budgets = shown::budgets(recording.spent(), of_origin);
        let mut answer = Answer { budgets, ..self.answer(&pair, &applied, &recording.finish()) };
        let is_other = self.old.is_some() && pair.old.is_none();
        if is_other && self.asked.options.operation != Some(Operation::Create) {
            let note = "the old object is another one, by kind, namespace or name: this is a creation";
            answer.notes.push(note.to_owned());
        }
        Ok(answer)
    }

    /// Pairs the new object with the old one, if it replaces that.
    fn pair(&self) -> Result<Pair, Vec<Mistake>> {
        let new = Arc::new(self.new.value.clone());
        let old: Vec<Arc<Value>> = self.old.iter().map(|old| Arc::new(old.value.clone())).collect();
        let paired = apply::pair(&[new], &old, self.set.documents(), &self.asked.namespace);
        let wrong = |errors: Vec<(usize, PairError)>| {
            let one =
                |(_, error): (usize, PairError)| Mistake::of_field(&self.new, "metadata", error.to_string());
            errors.into_iter().map(one).collect::<Vec<_>>()
        };
        let pair = paired.map_err(wrong)?.pairs.into_iter().next();
        pair.ok_or_else(|| vec![Mistake::of_pane("new", "write an object")])
    }

    /// Checks that the operation and the subresource are possible for this pair.
    fn fits(&self, pair: &Pair) -> Result<(), Vec<Mistake>> {
        let options = &self.asked.options;
        let wrong = |field: &str, message: &str| Err(vec![self.asked.mistake(field, message)]);
        match (options.subresource, options.operation) {
            (Some(Subresource::Status), Some(Operation::Create | Operation::Delete)) => {
                wrong("subresource", "status goes with UPDATE: it is never created alone")
            }
            (Some(Subresource::Status), _) | (None, Some(Operation::Update)) if pair.old.is_none() => {
                let field = if options.subresource.is_some() { "subresource" } else { "operation" };
                wrong(field, "an update needs the object that is there before: write it as the old one")
            }
            (Some(subresource), Some(_)) if subresource != Subresource::Status => {
                wrong("operation", "the subresource has an operation of its own: leave this out")
            }
            (_, _) => Ok(()),
        }
    }

    fn answer(&self, pair: &Pair, applied: &Applied, recorded: &IndexMap<ExpressionId, Recorded>) -> Answer {
        let decided = check::applied_json(applied);
        let outcome = decided.get("outcome").and_then(Value::as_str).unwrap_or_default();
        let (expressions, coverage) = shown::all(expressions(&self.set), recorded, |id| self.whose(id));
        let mut notes: Vec<String> = applied.missed.iter().map(check::missed_line).collect();
        if applied.as_written {
            notes.push("nothing is known of this kind: the object is taken as it is written".to_owned());
        }
        if applied.refusal.is_some() && applied.outcomes.is_empty() && self.set.policies().next().is_some() {
            notes.push("no policy is asked about what cannot be stored".to_owned());
        }
        Answer {
            messages: self.messages(applied),
            status: decided.get("status").filter(|status| !status.is_null()).cloned(),
            warnings: applied.warnings.clone(),
            audit_annotations: applied.audit_annotations.clone(),
            rules: self.rules(&decided),
            changed: applied.mutated.as_ref().map(|object| changed(&pair.new, object)),
            expressions,
            coverage,
            notes,
            ..Answer::of(outcome, sentence(pair, applied, outcome))
        }
    }

    /// Returns the causes of the rejection: each field, or the message if no field is named.
    fn messages(&self, applied: &Applied) -> Vec<Mistake> {
        let Some(status) = &applied.refusal else { return Vec::new() };
        let causes = status.causes();
        if causes.is_empty() || !applied.outcomes.is_empty() {
            return vec![Mistake { message: status.message.clone(), path: String::new(), place: None }];
        }
        causes.iter().map(|cause| Mistake::of_field(&self.new, &cause.field, cause.message.clone())).collect()
    }

    /// Returns the outcome of each rule, with its position.
    fn rules(&self, decided: &Value) -> Vec<Value> {
        let lists = ["rules", "skipped"].into_iter().filter_map(|key| decided.get(key)?.as_array());
        let placed = |rule: &Value| {
            let text = |key: &str| rule.get(key).and_then(Value::as_str);
            let place = text("policy").zip(text("path")).and_then(|(policy, path)| {
                let kinds = ["ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"];
                let document = kinds.into_iter().find_map(|kind| self.document(kind, policy))?;
                Some(Place::of(document, path))
            });
            let mut rule = rule.clone();
            if let Some(fields) = rule.as_object_mut() {
                fields.insert("place".to_owned(), json!(place));
                fields.entry("verdict").or_insert_with(|| json!("skipped"));
            }
            rule
        };
        lists.flatten().map(placed).collect()
    }

    /// Returns the owner of an expression, and its position.
    fn whose(&self, id: &ExpressionId) -> (String, Option<Place>) {
        let document = self.document(id.origin.kind(), id.origin.name());
        (of_origin(&id.origin), document.map(|document| Place::of(document, &id.path)))
    }

    fn document(&self, kind: &str, name: &str) -> Option<&Document> {
        let is = |document: &Document, pointer: &str, text: &str| {
            document.value.pointer(pointer).and_then(Value::as_str) == Some(text)
        };
        self.definitions.iter().find(|one| is(one, "/kind", kind) && is(one, "/metadata/name", name))
    }
}

fn of_origin(origin: &Origin) -> String {
    match origin {
        Origin::Policy { name } => format!("policy {name}"),
        Origin::Mutating { name } => format!("mutating policy {name}"),
        Origin::Definition { name, version } => format!("{name}, version {version}"),
        Origin::Configuration { kind, name } => format!("{kind} {name}"),
    }
}

/// Returns every compiled expression.
fn expressions(set: &PolicySet) -> Vec<admit_policy::Expression<'_>> {
    let versions = set.documents().crds().iter().flat_map(|crd| crd.versions());
    let of_definitions = versions.flat_map(|version| version.expressions());
    let of_policies = set.policies().flat_map(|(policy, _)| policy.expressions());
    let of_mutating = set.mutating_policies().flat_map(|(policy, _)| policy.expressions());
    of_definitions.chain(of_mutating).chain(of_policies).collect()
}

fn changed(before: &Value, after: &Value) -> Changed {
    // Fields are sorted, so that only what was changed differs.
    let (before, object) = (yaml::write_sorted(before), yaml::write_sorted(after));
    Changed { difference: diff::lines(&before, &object), object }
}

/// `create of DataGather sample: denied`.
fn sentence(pair: &Pair, applied: &Applied, outcome: &str) -> String {
    let said = match outcome {
        "deny" => "refused",
        "unmatched" => "admitted; nothing was asked about it",
        "unchanged" => "nothing is sent: the objects are equal",
        "warn" => "admitted, with a warning",
        "audit" => "admitted, and noted in the audit log",
        _ => "admitted",
    };
    format!("{} of {}: {said}", applied.change.as_str(), pair.identity)
}
