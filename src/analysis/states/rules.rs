//! Collects the rules that may apply to a kind: their expressions and messages, and what they read.

use std::collections::BTreeMap;
use std::sync::Arc;

use admit_cel::syntax::{Ast, Expr, ExprId};
use admit_policy::crd::{CompiledCrd, CrdVersion};
use admit_policy::manifest::Document;
use admit_policy::schema::Schema;
use serde_json::Value;

use super::judge::{Objection, Speaker};
use crate::reads::{self, EACH, Names, Reads};

/// One rule of a definition, or one validation of a policy.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// The definition or the policy.
    pub(super) origin: String,
    pub(super) place: RulePlace,
    pub(super) text: String,
    pub(super) message: String,
    pub(super) reads: Reads,
    pub(super) written: Arc<Written>,
    /// Whether it applies to requests that write the status, to the others, or to both.
    pub(super) requests: Requests,
    /// Whether it also depends on something that is not read here: labels, names, params.
    pub(super) selects: bool,
}

/// The syntax tree of a rule, macros not expanded.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) rule: Ast,
    /// The match conditions of a policy.
    pub(super) conditions: Vec<Ast>,
    pub(super) variables: BTreeMap<String, Ast>,
    /// Whether a rule that fails admits the request (failurePolicy Ignore).
    pub(super) ignores_failure: bool,
}

impl Written {
    /// Returns the operands if the rule is a conjunction, else the rule itself.
    pub(super) fn parts(&self) -> Vec<ExprId> {
        let (mut parts, mut open) = (Vec::new(), vec![self.rule.root()]);
        while let Some(id) = open.pop() {
            match self.rule.expr(id) {
                Expr::Call { function, target: None, args } if &**function == "_&&_" => {
                    open.extend(args.iter().copied());
                }
                _ => parts.push(id),
            }
        }
        parts
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Requests {
    pub(super) status: bool,
    pub(super) main: bool,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum RulePlace {
    /// A rule at a node of the schema.
    Node {
        path: Vec<String>,
        uses_old: bool,
    },
    Validation(usize),
}

impl Rule {
    /// Reports whether the objection is of this rule, or of one with the same message at the same place.
    pub(super) fn says(&self, objection: &Objection) -> bool {
        match (&self.place, &objection.by) {
            (RulePlace::Validation(own), Speaker::Policy { name, validation: Some(index) }) => {
                *name == self.origin && own == index
            }
            (RulePlace::Node { path, .. }, Speaker::Server { field, .. }) => {
                let told = if self.message.is_empty() {
                    objection.message == format!("failed rule: {}", self.text)
                } else {
                    objection.message == self.message
                };
                told && *field == path.join(".")
            }
            _ => false,
        }
    }

    /// Reports whether its verdict depends on one of the fields, or on a whole object that contains one.
    pub(super) fn speaks_of(&self, fields: &[Vec<String>]) -> bool {
        fields.iter().any(|field| {
            let is_in = |place: &reads::Place| field.starts_with(place.path.as_slice());
            self.reads.paths().any(|path| path.starts_with(field)) || self.reads.values.iter().any(is_in)
        })
    }
}

/// Collects the rules of a version of a definition.
pub(super) fn of_definition(crd: &CompiledCrd, version: &CrdVersion) -> Vec<Rule> {
    let mut rules = Vec::new();
    below(version.schema(), &mut Vec::new(), &crd.definition().name, &mut rules);
    rules
}

fn below(schema: &Schema, path: &mut Vec<String>, origin: &str, rules: &mut Vec<Rule>) {
    for rule in &schema.rules {
        let text = rule.rule.trim();
        let (Some(ast), Some(written)) = (reads::parsed(text), reads::as_written(text)) else { continue };
        let names = Names { node: Some(path.clone()), variables: BTreeMap::new() };
        let reads = reads::of(&ast, &names);
        let is_old = |place: &reads::Place| place.old;
        let uses_old = reads.values.iter().any(is_old) || reads.tests.iter().any(is_old);
        rules.push(Rule {
            origin: origin.to_owned(),
            place: RulePlace::Node { path: path.clone(), uses_old },
            text: text.to_owned(),
            written: Arc::new(Written {
                rule: written,
                conditions: Vec::new(),
                variables: BTreeMap::new(),
                ignores_failure: false,
            }),
            requests: Requests { status: true, main: true },
            message: rule.message.trim().to_owned(),
            // With `fieldPath` or `messageExpression` an error cannot be attributed to the rule.
            selects: !rule.field_path.is_empty() || !rule.message_expression.is_empty(),
            reads,
        });
    }
    let children = schema.properties.iter().map(|(name, child)| (&**name, child));
    let each =
        schema.items.as_deref().into_iter().chain(schema.additional_schema()).map(|child| (EACH, child));
    for (name, child) in children.chain(each) {
        path.push(name.to_owned());
        below(child, path, origin, rules);
        path.pop();
    }
}

/// Collects the validations of the policies among `documents` that match the group's resource.
pub(super) fn of_policies(documents: &[Document], group: &str, plural: &str) -> Vec<Rule> {
    let is_policy = |document: &&Document| text(&document.value, "/kind") == "ValidatingAdmissionPolicy";
    let policies = documents.iter().filter(is_policy).map(|document| &document.value);
    let matching = policies.filter(|policy| matches(policy, group, plural));
    matching.flat_map(|policy| of_policy(policy, documents, requests(policy, group, plural))).collect()
}

fn matches(policy: &Value, group: &str, plural: &str) -> bool {
    let requests = requests(policy, group, plural);
    requests.status || requests.main
}

fn requests(policy: &Value, group: &str, plural: &str) -> Requests {
    let has = |rule: &Value, list: &str, is_it: &dyn Fn(&str) -> bool| {
        list_of(rule, list).iter().filter_map(Value::as_str).any(is_it)
    };
    let any = |is_resource: &dyn Fn(&str) -> bool| {
        list_of(policy, "/spec/matchConstraints/resourceRules").iter().any(|rule| {
            has(rule, "/apiGroups", &|own| own == "*" || own == group) && has(rule, "/resources", is_resource)
        })
    };
    let is_status = |name: &str| {
        name.split_once('/')
            .is_some_and(|(of, part)| (of == "*" || of == plural) && (part == "*" || part == "status"))
    };
    Requests { status: any(&is_status), main: any(&|name| name == "*" || name == "*/*" || name == plural) }
}

fn of_policy(policy: &Value, documents: &[Document], requests: Requests) -> Vec<Rule> {
    let variables = list_of(policy, "/spec/variables").iter().filter_map(|variable| {
        Some((text(variable, "/name").to_owned(), reads::parsed(text(variable, "/expression"))?))
    });
    let names = Names { node: None, variables: variables.collect() };
    let written = list_of(policy, "/spec/variables").iter().filter_map(|variable| {
        Some((text(variable, "/name").to_owned(), reads::as_written(text(variable, "/expression"))?))
    });
    let written: BTreeMap<String, Ast> = written.collect();
    let mut conditions = Reads::default();
    let mut conditions_written = Vec::new();
    let mut unread = false;
    for condition in list_of(policy, "/spec/matchConditions") {
        match reads::parsed(text(condition, "/expression")) {
            Some(ast) => conditions.add(&reads::of(&ast, &names)),
            None => unread = true,
        }
        match reads::as_written(text(condition, "/expression")) {
            Some(ast) => conditions_written.push(ast),
            None => unread = true,
        }
    }
    let origin = text(policy, "/metadata/name");
    let selects = unread || selects(policy, origin, documents);
    let validations = list_of(policy, "/spec/validations").iter().enumerate();
    let rules = validations.filter_map(|(index, validation)| {
        let expression = text(validation, "/expression").trim();
        let ast = reads::parsed(expression)?;
        let mut reads = reads::of(&ast, &names);
        reads.add(&conditions);
        Some(Rule {
            origin: origin.to_owned(),
            place: RulePlace::Validation(index),
            text: expression.to_owned(),
            written: Arc::new(Written {
                rule: reads::as_written(expression)?,
                conditions: conditions_written.clone(),
                variables: written.clone(),
                ignores_failure: text(policy, "/spec/failurePolicy") == "Ignore",
            }),
            requests,
            message: text(validation, "/message").trim().to_owned(),
            reads,
            selects,
        })
    });
    rules.collect()
}

/// Reports whether the policy, or a binding of it, selects some objects or namespaces only, or has params.
fn selects(policy: &Value, name: &str, documents: &[Document]) -> bool {
    const SELECTORS: [&str; 3] = ["objectSelector", "namespaceSelector", "excludeResourceRules"];
    let narrows = |resources: Option<&Value>| {
        resources.is_some_and(|resources| {
            SELECTORS.iter().any(|selector| resources.get(*selector).is_some())
                || list_of(resources, "/resourceRules").iter().any(|rule| rule.get("resourceNames").is_some())
        })
    };
    let of_it = |document: &&Document| {
        text(&document.value, "/kind") == "ValidatingAdmissionPolicyBinding"
            && text(&document.value, "/spec/policyName") == name
    };
    let by_binding = documents.iter().filter(of_it).any(|binding| {
        binding.value.pointer("/spec/paramRef").is_some()
            || narrows(binding.value.pointer("/spec/matchResources"))
    });
    by_binding || narrows(policy.pointer("/spec/matchConstraints"))
}

pub(super) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list_of<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
