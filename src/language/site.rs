//! Finds the expression at a position, and the names that it may use.

use std::ops::Range;

use admit_analysis::states::state_env;
use admit_apimachinery::yaml::{SpotId, Written};
use admit_cel::{Env, Mode, Type};
use admit_policy::crd::rules::{RuleEnv, decl_type};
use admit_policy::manifest::Document;
use admit_policy::server_config::configuration_env;
use admit_policy::suite::Suite;
use admit_policy::{GroupVersionKind, Path, PolicyPart, PolicyScope, Types as _, schema, selector_env};
use serde_json::Value;

use crate::file::{File, Good};
use crate::known::Known;

/// An expression in a file.
pub(crate) struct Site<'f> {
    pub(crate) good: &'f Good,
    pub(crate) document: &'f Document,
    /// The root of the document.
    pub(crate) root: SpotId,
    /// The path from there.
    pub(crate) path: Vec<String>,
    /// Its text, and where it is in the current text.
    pub(crate) written: Written,
    pub(crate) kind: Kind,
}

/// What an expression belongs to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// A rule of a schema, or its message; the path to the schema node, and the index of the rule.
    Rule { schema: Vec<String>, rule: usize },
    /// A policy: the number of variables declared before, `None` for all; its role.
    Policy { before: Option<usize>, part: PolicyPart },
    /// A condition of a webhook, by index.
    Webhook(usize),
    /// A device selector.
    Selector,
    /// The configuration of an API server.
    Configuration,
    /// The state of objects in a suite, by index of the case.
    State(usize),
}

/// The names that an expression may use.
pub(crate) struct Names {
    pub(crate) env: Env,
    /// The kind of `object`.
    pub(crate) object: Option<GroupVersionKind>,
    pub(crate) params: Option<GroupVersionKind>,
}

impl<'f> Site<'f> {
    /// Finds the expression at a byte of the file, and the byte within the expression.
    pub(crate) fn at(file: &'f File, offset: usize) -> Option<(Self, usize)> {
        let good = file.good.as_ref()?;
        let id = good.layout.at(file.before(offset)?)?;
        let spot = good.layout.spot(id)?;
        let value = file.now(&spot.value, offset)?;
        let site = Self::of(good, id, &value, file.text.as_str())?;
        let offset = site.written.offset(offset);
        Some((site, offset))
    }

    /// Takes the expression that a value is, with its range `value` in `text`.
    pub(crate) fn of(good: &'f Good, id: SpotId, value: &Range<usize>, text: &str) -> Option<Self> {
        let style = good.layout.spot(id)?.style?;
        let (document, root, path) = good.document_of(id)?;
        let kind = kind(document, &path)?;
        let written = Written::of(text, value.clone(), style);
        Some(Self { good, document, root, path, written, kind })
    }

    /// Returns the names that it may use. If a policy matches several kinds, `object` is of the first with a known type.
    pub(crate) fn names(&self, known: &Known<'_>) -> Option<Names> {
        let alone = |env| Some(Names { env, object: None, params: None });
        match &self.kind {
            Kind::Rule { schema, rule } => {
                let node = raw(&self.document.value, schema)?;
                let schema = schema::parse(node, &Path::Nil).ok()?;
                let is_root = self.path.iter().skip_while(|step| *step != "openAPIV3Schema").nth(1)
                    == Some(&"x-kubernetes-validations".to_owned());
                let decl = decl_type(&schema, is_root || schema.embedded_resource)?;
                let env = RuleEnv::new(&decl).env(schema.rules.get(*rule)?, Mode::New);
                alone(env)
            }
            Kind::Policy { before, part } => {
                Some(Names::of(&PolicyScope::of(&self.document.value, *before, known), *part))
            }
            Kind::Webhook(number) => {
                let webhook = self.document.value.get("webhooks")?.get(*number)?;
                Some(Names::of(&PolicyScope::of_webhook(webhook, known), PolicyPart::Condition))
            }
            Kind::Selector => alone(selector_env()),
            Kind::Configuration => {
                let steps: Vec<&str> = self.path.iter().map(String::as_str).collect();
                alone(configuration_env(self.document.value.get("kind")?.as_str()?, &steps)?)
            }
            Kind::State(number) => {
                let case = self.document.value.get("states")?.get(*number)?;
                let object = known.named(case.get("kind").and_then(Value::as_str));
                let ty = object.as_ref().and_then(|kind| known.type_of(kind)).unwrap_or(Type::Dyn);
                Some(Names { env: state_env(&ty), object, params: None })
            }
        }
    }
}

impl Names {
    fn of(scope: &PolicyScope, part: PolicyPart) -> Self {
        let typed = |(kind, ty): &(GroupVersionKind, Option<Type>)| Some((kind.clone(), ty.clone()?));
        let object = scope.kinds().iter().find_map(typed);
        let env = scope.env(object.as_ref().map(|(_, ty)| ty), part);
        Self { env, object: object.map(|(kind, _)| kind), params: scope.param_kind().cloned() }
    }
}

/// Returns the value at a path.
pub(crate) fn raw<'v>(value: &'v Value, steps: &[String]) -> Option<&'v Value> {
    steps.iter().try_fold(value, |value, step| match value {
        Value::Object(map) => map.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Determines whether the value is an expression, and of which kind.
fn kind(document: &Document, path: &[String]) -> Option<Kind> {
    let steps: Vec<&str> = path.iter().map(String::as_str).collect();
    let number = |step: &str| step.parse::<usize>().ok();
    match document.value.get("kind").and_then(Value::as_str)? {
        "CustomResourceDefinition" => match steps.as_slice() {
            [schema @ .., "x-kubernetes-validations", rule, "rule" | "messageExpression"]
                if schema.contains(&"openAPIV3Schema") =>
            {
                let schema = schema.iter().map(|step| (*step).to_owned()).collect();
                Some(Kind::Rule { schema, rule: number(rule)? })
            }
            _ => None,
        },
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => of_policy(&steps),
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => match steps.as_slice() {
            ["webhooks", webhook, "matchConditions", _, "expression"] => {
                Some(Kind::Webhook(number(webhook)?))
            }
            _ => None,
        },
        "DeviceClass" | "ResourceClaim" | "ResourceClaimTemplate" => match steps.as_slice() {
            ["spec", .., "selectors", _, "cel", "expression"] => Some(Kind::Selector),
            _ => None,
        },
        "Suite" => match steps.as_slice() {
            ["states", case, "state" | "where"] if Suite::is(&document.value) => {
                Some(Kind::State(number(case)?))
            }
            _ => None,
        },
        other => configuration_env(other, &steps).map(|_| Kind::Configuration),
    }
}

fn of_policy(steps: &[&str]) -> Option<Kind> {
    let part = match steps {
        ["spec", "variables", index, "expression"] => {
            return Some(Kind::Policy { before: Some(index.parse().ok()?), part: PolicyPart::Rule });
        }
        ["spec", "validations", _, "expression"] | ["spec", "auditAnnotations", _, "valueExpression"] => {
            PolicyPart::Rule
        }
        ["spec", "validations", _, "messageExpression"] => PolicyPart::Message,
        ["spec", "matchConditions", _, "expression"] => PolicyPart::Condition,
        ["spec", "mutations", _, "applyConfiguration" | "jsonPatch", "expression"] => PolicyPart::Patch,
        _ => return None,
    };
    Some(Kind::Policy { before: None, part })
}
