//! Estimates the static cost of every rule of a schema, and finds the missing bounds that make it expensive.
//!
//! The cause is found by experiment: the estimate is repeated with one more bound at a time, and the bounds that
//! lower it most are reported. So the result holds for whatever the estimate depends on.

use crate::crd::occurrences;
use crate::crd::rules::compile::{Modes, RuleEnv};
use crate::crd::rules::decl::decl_type;
use crate::schema::{AdditionalProperties, Rule, Schema, SchemaType};

/// The cost limit of one rule.
pub const RULE_LIMIT: u64 = crate::crd::EXPRESSION_LIMIT;
/// The cost limit of all rules of a version together.
pub const VERSION_LIMIT: u64 = crate::crd::TOTAL_LIMIT;

/// For estimates below this, causes are not searched.
const WORTH_ASKING: u64 = RULE_LIMIT / 100;
/// Bounds that are tried for one rule.
const MAX_TRIES: usize = 128;
/// The maximum number of causes to report.
const MAX_CAUSES: usize = 3;

/// The estimate of one rule.
///
/// ```
/// use admit_policy::lint::{Cause, RuleCost};
///
/// let cause = Cause { field: "spec.items".into(), bound: "maxItems", tried: 100, cost: 4_000 };
/// let rule = RuleCost { path: String::new(), cost: 400_000_000, runs: 1, causes: vec![cause] };
/// assert_eq!(rule.advice(), "spec.items has no maxItems: with maxItems: 100 the estimate is 4000");
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RuleCost {
    /// `spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule`
    pub path: String,
    /// The estimate of one evaluation times the number of evaluations, which a server compares with its limit.
    pub cost: u64,
    /// How often the rule can run on one object.
    pub runs: u64,
    /// The fields whose missing bound raises the cost most, in descending order.
    pub causes: Vec<Cause>,
}

/// A bound that is missing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Cause {
    /// The field of an object: `spec.items[*].name`.
    pub field: String,
    /// `maxItems`, `maxLength` or `maxProperties`.
    pub bound: &'static str,
    /// The bound that was tried.
    pub tried: i64,
    /// The estimate with it.
    pub cost: u64,
}

impl RuleCost {
    /// Advice on how to lower the cost; empty where nothing helps.
    pub fn advice(&self) -> String {
        let one = |cause: &Cause| {
            let Cause { field, bound, tried, cost } = cause;
            format!("{field} has no {bound}: with {bound}: {tried} the estimate is {cost}")
        };
        self.causes.iter().map(one).collect::<Vec<_>>().join("; ")
    }
}

/// The costs of all rules in the structural part of `schema`, which is at `path` in its document.
pub(super) fn costs(schema: &Schema, path: &str) -> Vec<RuleCost> {
    let mut costs = Vec::new();
    let root = Place { schema, above: &[], path: path.to_owned(), field: String::new() };
    walk(&root, &mut costs);
    costs
}

/// A node of the schema.
struct Place<'s> {
    schema: &'s Schema,
    /// The nodes above with the fields that they are for, the root first.
    above: &'s [(&'s Schema, String)],
    path: String,
    field: String,
}

fn walk(place: &Place<'_>, costs: &mut Vec<RuleCost>) {
    for (index, rule) in place.schema.rules.iter().enumerate() {
        costs.extend(rule_cost(place, index, rule));
    }
    let mut above = place.above.to_vec();
    above.push((place.schema, place.field.clone()));
    for step in Step::all(place.schema) {
        let Some(schema) = step.of(place.schema) else { continue };
        let path = format!("{}.{}", place.path, step.in_schema());
        walk(&Place { schema, above: &above, path, field: step.in_object(&place.field) }, costs);
    }
}

fn rule_cost(place: &Place<'_>, index: usize, rule: &Rule) -> Option<RuleCost> {
    let factors: Vec<Option<u64>> = place.above.iter().map(|(schema, _)| occurrences(schema)).collect();
    let is_root = place.above.is_empty();
    let (cost, runs) = estimate(place.schema, is_root, rule, &factors)?;
    let mut causes = if cost < WORTH_ASKING { Vec::new() } else { causes(place, rule, &factors) };
    // What does not halve the estimate is not the reason for it.
    causes.retain(|cause| cause.cost <= cost / 2);
    causes.sort_by_key(|cause| cause.cost);
    causes.truncate(MAX_CAUSES);
    let path = format!("{}.x-kubernetes-validations[{index}].rule", place.path);
    Some(RuleCost { path, cost, runs, causes })
}

/// Cost of all evaluations, and how many there are.
fn estimate(schema: &Schema, is_root: bool, rule: &Rule, factors: &[Option<u64>]) -> Option<(u64, u64)> {
    let decl = decl_type(schema, is_root || schema.embedded_resource)?;
    let env = RuleEnv::new(&decl);
    let each = env.compile(rule, schema, Modes::NEW).program?.ok()?.max_cost;
    let runs = factors.iter().copied().try_fold(1_u64, |runs, factor| Some(runs.saturating_mul(factor?)));
    let runs = runs.unwrap_or_else(|| env.max_cardinality());
    Some((each.saturating_mul(runs), runs))
}

fn causes(place: &Place<'_>, rule: &Rule, factors: &[Option<u64>]) -> Vec<Cause> {
    let is_root = place.above.is_empty();
    let mut causes = Vec::new();
    for (index, (schema, field)) in place.above.iter().enumerate() {
        let Some(bound) = Bound::missing(schema) else { continue };
        let mut factors = factors.to_vec();
        if let Some(factor) = factors.get_mut(index) {
            *factor = u64::try_from(bound.tried()).ok();
        }
        let cost = estimate(place.schema, is_root, rule, &factors).map(|(cost, _)| cost);
        causes.extend(cost.map(|cost| bound.cause(field, cost)));
    }
    let mut candidates = Vec::new();
    unbounded(place.schema, &place.field, &mut Vec::new(), &mut candidates);
    for (steps, field, bound) in candidates {
        let mut schema = place.schema.clone();
        if let Some(node) = at_mut(&mut schema, &steps) {
            bound.set(node);
        }
        let cost = estimate(&schema, is_root, rule, factors).map(|(cost, _)| cost);
        causes.extend(cost.map(|cost| bound.cause(&field, cost)));
    }
    causes
}

/// A step down a schema.
#[derive(Clone, Debug)]
enum Step {
    Property(Box<str>),
    Items,
    Additional,
}

impl Step {
    fn all(schema: &Schema) -> Vec<Self> {
        let mut steps: Vec<Self> = schema.properties.keys().cloned().map(Self::Property).collect();
        steps.extend(schema.items.is_some().then_some(Self::Items));
        steps.extend(schema.additional_schema().is_some().then_some(Self::Additional));
        steps
    }

    fn of<'s>(&self, schema: &'s Schema) -> Option<&'s Schema> {
        match self {
            Self::Property(name) => schema.properties.get(name),
            Self::Items => schema.items.as_deref(),
            Self::Additional => schema.additional_schema(),
        }
    }

    fn of_mut<'s>(&self, schema: &'s mut Schema) -> Option<&'s mut Schema> {
        match self {
            Self::Property(name) => schema.properties.get_mut(name),
            Self::Items => schema.items.as_deref_mut(),
            Self::Additional => match &mut schema.additional_properties {
                Some(AdditionalProperties::Schema(schema)) => Some(schema),
                Some(AdditionalProperties::Allowed(_)) | None => None,
            },
        }
    }

    fn in_schema(&self) -> String {
        match self {
            Self::Property(name) => format!("properties[{name}]"),
            Self::Items => "items".to_owned(),
            Self::Additional => "additionalProperties".to_owned(),
        }
    }

    fn in_object(&self, field: &str) -> String {
        match self {
            Self::Property(name) if field.is_empty() => name.to_string(),
            Self::Property(name) => format!("{field}.{name}"),
            Self::Items | Self::Additional => format!("{field}[*]"),
        }
    }
}

fn at_mut<'s>(schema: &'s mut Schema, steps: &[Step]) -> Option<&'s mut Schema> {
    steps.iter().try_fold(schema, |schema, step| step.of_mut(schema))
}

type Candidate = (Vec<Step>, String, Bound);

/// The nodes in `schema` whose size nothing bounds.
fn unbounded(schema: &Schema, field: &str, steps: &mut Vec<Step>, found: &mut Vec<Candidate>) {
    if found.len() >= MAX_TRIES {
        return;
    }
    found.extend(Bound::missing(schema).map(|bound| (steps.clone(), field.to_owned(), bound)));
    for step in Step::all(schema) {
        if let Some(below) = step.of(schema) {
            let field = step.in_object(field);
            steps.push(step);
            unbounded(below, &field, steps, found);
            steps.pop();
        }
    }
}

/// What bounds the size of a value.
#[derive(Clone, Copy, Debug)]
enum Bound {
    Items,
    Length,
    Properties,
}

impl Bound {
    /// What a node lacks, if its values can grow.
    fn missing(schema: &Schema) -> Option<Self> {
        let checks = &schema.checks;
        let is_short = !checks.enumeration.is_empty()
            || matches!(checks.format.as_deref(), Some("date" | "date-time" | "duration"));
        match &schema.schema_type {
            Some(SchemaType::Array) => checks.max_items.is_none().then_some(Self::Items),
            Some(SchemaType::Object) if schema.additional_schema().is_some() => {
                checks.max_properties.is_none().then_some(Self::Properties)
            }
            Some(SchemaType::String) => (checks.max_length.is_none() && !is_short).then_some(Self::Length),
            _ => (schema.int_or_string && checks.max_length.is_none()).then_some(Self::Length),
        }
    }

    /// A generous bound.
    const fn tried(self) -> i64 {
        match self {
            Self::Items | Self::Properties => 64,
            Self::Length => 256,
        }
    }

    fn set(self, schema: &mut Schema) {
        let checks = &mut schema.checks;
        match self {
            Self::Items => checks.max_items = Some(self.tried()),
            Self::Length => checks.max_length = Some(self.tried()),
            Self::Properties => checks.max_properties = Some(self.tried()),
        }
    }

    fn cause(self, field: &str, cost: u64) -> Cause {
        let bound = match self {
            Self::Items => "maxItems",
            Self::Length => "maxLength",
            Self::Properties => "maxProperties",
        };
        Cause { field: field.to_owned(), bound, tried: self.tried(), cost }
    }
}
