//! Translates a schema's constraints on a node into terms, including those under `allOf`, `anyOf`, `oneOf`
//! and `not`.

use admit_policy::schema::{Checks, Schema, SchemaType};
use serde_json::Value;

use super::Undecided;
use super::document::{Form, NodeId, World};
use super::regular;
use super::term::Term;
use super::view::is_open;

/// A condition, or the name of a keyword that cannot be translated.
pub(super) type Demand = Result<Term, String>;

impl<'s> World<'s> {
    /// Returns the conditions on the node itself: bounds, patterns, properties, alternatives.
    pub(super) fn demands(&mut self, id: NodeId, schema: &Schema) -> Result<Vec<Demand>, Undecided> {
        let form = self.force(id)?;
        let checks = &schema.checks;
        let mut demands = Vec::new();
        match &form {
            Form::Text(text) => self.of_text(*text, schema, &mut demands),
            Form::Int(int) => self.of_int(*int, checks, &mut demands),
            Form::IntOrText { is_int, int, text } => {
                self.of_either(*is_int, *int, *text, schema, &mut demands)
            }
            Form::Bool(value) => self.of_bool(*value, checks, &mut demands),
            Form::List { length, .. } => {
                let bounds = [(checks.min_items, true), (checks.max_items, false)];
                self.of_count(*length, bounds, &mut demands);
                Self::unsaid_members(checks, &mut demands);
            }
            Form::Map { length, .. } => {
                let bounds = [(checks.min_properties, true), (checks.max_properties, false)];
                self.of_count(*length, bounds, &mut demands);
                Self::unsaid_members(checks, &mut demands);
                if !checks.required.is_empty() {
                    demands.push(Err("keys that a map must have".to_owned()));
                }
            }
            Form::Object(_) => Self::unsaid_members(checks, &mut demands),
            Form::Any => {}
        }
        self.alternatives(id, checks, &mut demands)?;
        Ok(demands)
    }

    /// Number keywords constrain only numbers, and string keywords only strings (int-or-string fields).
    fn of_either(&mut self, is_int: Term, int: Term, text: Term, schema: &Schema, demands: &mut Vec<Demand>) {
        let (mut of_int, mut of_text) = (Vec::new(), Vec::new());
        self.of_int(int, &schema.checks, &mut of_int);
        self.of_text(text, schema, &mut of_text);
        let is_text = self.terms.not(is_int);
        for (when, demand) in of_int
            .into_iter()
            .map(|demand| (is_int, demand))
            .chain(of_text.into_iter().map(|demand| (is_text, demand)))
        {
            demands.push(demand.map(|holds| self.terms.implies(when, holds)));
        }
    }

    fn unsaid_members(checks: &Checks, demands: &mut Vec<Demand>) {
        if checks.enumeration.iter().next().is_some() {
            demands.push(Err("members of an enumeration that are lists or objects".to_owned()));
        }
    }

    fn of_count(&mut self, count: Term, bounds: [(Option<i64>, bool); 2], demands: &mut Vec<Demand>) {
        for (bound, is_least) in bounds {
            let Some(bound) = bound else { continue };
            let bound = self.terms.int(bound);
            demands.push(Ok(if is_least {
                self.terms.le(bound, count)
            } else {
                self.terms.le(count, bound)
            }));
        }
    }

    fn of_text(&mut self, text: Term, schema: &Schema, demands: &mut Vec<Demand>) {
        let checks = &schema.checks;
        let length = self.terms.length(text);
        self.of_count(length, [(checks.min_length, true), (checks.max_length, false)], demands);
        if let Some(pattern) = &checks.pattern {
            demands.push(match regular::language(pattern.text()) {
                Ok(language) => Ok(self.terms.in_language(text, &language)),
                Err(why) => Err(format!("{why}: {}", pattern.text())),
            });
        }
        if let Some(format) = checks.format.as_deref()
            && schema.unchecked_format().is_none()
        {
            demands.push(self.of_format(format, text).unwrap_or_else(|| Err(format!("format {format}"))));
        }
        let members: Vec<&Value> = checks.enumeration.iter().collect();
        if !members.is_empty() {
            let equal: Vec<Term> = members
                .iter()
                .filter_map(|member| member.as_str())
                .map(|member| {
                    let member = self.terms.text(member);
                    self.terms.eq(text, member)
                })
                .collect();
            demands.push(Ok(self.terms.or(&equal)));
        }
    }

    fn of_bool(&mut self, value: Term, checks: &Checks, demands: &mut Vec<Demand>) {
        let members: Vec<bool> = checks.enumeration.iter().filter_map(Value::as_bool).collect();
        if checks.enumeration.iter().next().is_some() {
            let equal: Vec<Term> = members
                .into_iter()
                .map(|member| {
                    let member = self.terms.bool(member);
                    self.terms.eq(value, member)
                })
                .collect();
            demands.push(Ok(self.terms.or(&equal)));
        }
    }

    fn of_int(&mut self, int: Term, checks: &Checks, demands: &mut Vec<Demand>) {
        for (bound, is_least, exclusive) in [
            (checks.minimum, true, checks.exclusive_minimum),
            (checks.maximum, false, checks.exclusive_maximum),
        ] {
            let Some(bound) = bound else { continue };
            let Some(bound) = whole(bound) else {
                demands.push(Err("a bound that is no whole number".to_owned()));
                continue;
            };
            let bound = self.terms.int(bound);
            demands.push(Ok(match (is_least, exclusive) {
                (true, false) => self.terms.le(bound, int),
                (true, true) => self.terms.lt(bound, int),
                (false, false) => self.terms.le(int, bound),
                (false, true) => self.terms.lt(int, bound),
            }));
        }
        if let Some(factor) = checks.multiple_of {
            demands.push(match whole(factor).filter(|factor| *factor > 0) {
                Some(factor) => {
                    let factor = self.terms.int(factor);
                    let rest = self.terms.remainder(int, factor);
                    let zero = self.terms.int(0);
                    Ok(self.terms.eq(rest, zero))
                }
                None => Err("`multipleOf` with a fraction".to_owned()),
            });
        }
        if checks.enumeration.iter().next().is_some() {
            if checks.enumeration.iter().any(|member| member.is_f64()) {
                demands.push(Err("members of an enumeration with fractions".to_owned()));
                return;
            }
            let equal: Vec<Term> = checks
                .enumeration
                .iter()
                .filter_map(Value::as_i64)
                .map(|member| {
                    let member = self.terms.int(member);
                    self.terms.eq(int, member)
                })
                .collect();
            demands.push(Ok(self.terms.or(&equal)));
        }
    }

    fn alternatives(
        &mut self,
        id: NodeId,
        checks: &Checks,
        demands: &mut Vec<Demand>,
    ) -> Result<(), Undecided> {
        for part in &checks.all_of {
            let demand = self.satisfies(id, part)?;
            demands.push(demand);
        }
        for (parts, exactly_one) in [(&checks.any_of, false), (&checks.one_of, true)] {
            if parts.is_empty() {
                continue;
            }
            let each = parts.iter().map(|part| self.satisfies(id, part)).collect::<Result<Vec<_>, _>>()?;
            let each = each.into_iter().collect::<Result<Vec<_>, _>>();
            demands.push(each.map(|each| {
                if !exactly_one {
                    return self.terms.or(&each);
                }
                let (one, zero) = (self.terms.int(1), self.terms.int(0));
                let counted: Vec<Term> = each.iter().map(|part| self.terms.ite(*part, one, zero)).collect();
                let count = self.terms.sum(&counted);
                self.terms.eq(count, one)
            }));
        }
        if let Some(part) = &checks.not {
            let demand = self.satisfies(id, part)?;
            demands.push(demand.map(|holds| self.terms.not(holds)));
        }
        Ok(())
    }

    /// Returns whether a node that is present and not null satisfies a schema under a logical keyword.
    fn satisfies(&mut self, id: NodeId, schema: &Schema) -> Result<Demand, Undecided> {
        self.check_size()?;
        let form = self.force(id)?;
        let own = self.node(id)?.schema;
        let of_either = match (&form, &schema.schema_type) {
            (Form::IntOrText { is_int, .. }, Some(SchemaType::Integer)) => Some(*is_int),
            (Form::IntOrText { is_int, .. }, Some(SchemaType::String)) => Some(self.terms.not(*is_int)),
            _ => None,
        };
        let has_type = schema.schema_type.is_some() && of_either.is_none();
        let other_type = has_type && schema.schema_type != own.schema_type;
        let is_closed = schema.additional_properties.is_some() || schema.int_or_string;
        if other_type || is_closed || schema.checks.unique_items {
            return Ok(Err("alternatives of other types".to_owned()));
        }
        if schema.checks.min_properties.is_some() || schema.checks.max_properties.is_some() {
            return Ok(Err("alternatives with a number of properties".to_owned()));
        }
        let mut parts = self.demands(id, schema)?;
        parts.extend(of_either.map(Ok));
        match form {
            Form::Object(_) => {
                for name in &schema.checks.required {
                    parts.push(match self.property(id, name)? {
                        Some(child) => Ok(self.node(child)?.present),
                        None if is_open(own) => Err("undeclared properties".to_owned()),
                        None => Ok(self.terms.bool(false)),
                    });
                }
                for (name, part) in &schema.properties {
                    let Some(child) = self.property(id, name)? else {
                        if is_open(own) {
                            parts.push(Err("undeclared properties".to_owned()));
                        }
                        continue;
                    };
                    let condition = self.satisfied_below(child, part)?;
                    parts.push(condition);
                }
            }
            Form::List { items, .. } => {
                if let Some(part) = &schema.items {
                    for item in items {
                        let condition = self.satisfied_below(item, part)?;
                        parts.push(condition);
                    }
                }
            }
            Form::Any => parts.push(Err("alternatives of untyped values".to_owned())),
            Form::Map { .. } if !schema.properties.is_empty() || !schema.checks.required.is_empty() => {
                parts.push(Err("alternatives with keys of maps".to_owned()));
            }
            Form::Bool(_) | Form::Int(_) | Form::Text(_) | Form::IntOrText { .. } | Form::Map { .. } => {}
        }
        let parts = parts.into_iter().collect::<Result<Vec<_>, _>>();
        Ok(parts.map(|parts| self.terms.and(&parts)))
    }

    fn satisfied_below(&mut self, child: NodeId, schema: &Schema) -> Result<Demand, Undecided> {
        let node = self.node(child)?.clone();
        if self.terms.known_bool(node.null) != Some(false) {
            return Ok(Err("alternatives of what may be null".to_owned()));
        }
        let holds = self.satisfies(child, schema)?;
        Ok(holds.map(|holds| self.terms.implies(node.present, holds)))
    }
}

/// Converts a bound to an integer as the validator does; `None` if that rounds.
pub(super) fn whole(bound: f64) -> Option<i128> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    // Within this range every integer is exact as a floating-point number.
    let is_exact = bound.fract() == 0.0 && bound.abs() <= EXACT;
    is_exact.then(|| format!("{bound:.0}").parse().ok()).flatten()
}
