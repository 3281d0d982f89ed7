//! Evaluates the SMT terms for concrete requests, so that tests can compare them with the engine's
//! verdicts.

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::Undecided;
use super::document::{Form, NodeId, World};
use super::placed::Objects;
use super::roots::{kept, root};
use super::rules;
use super::side::Side;
use super::subject::Subject;
use super::term::Term;
use super::view::View;

/// Writes a script with three `check-sat` answers per request: whether the model covers it (it must, if a
/// server admits it); whether it is denied; whether an expression fails. Either all requests are creations
/// or all are updates.
///
/// # Errors
/// Lists what the translation to terms does not support.
pub fn agreement(
    subject: &Subject,
    side: &Side,
    requests: &[(Json, Option<Json>)],
    items: usize,
) -> Result<String, Vec<Undecided>> {
    let one = |undecided| vec![undecided];
    let view = rules::view(&side.rules);
    let schema = match view {
        View::Typed => &subject.typed,
        View::Plain => &subject.plain,
    };
    let mut world = World::new(items, view);
    let new = root(&mut world, schema).map_err(one)?;
    let is_update = requests.iter().any(|(_, old)| old.is_some());
    let old = if is_update { Some(root(&mut world, schema).map_err(one)?) } else { None };
    if let Some(old) = old {
        kept(&mut world, subject, new, old).map_err(one)?;
    }
    let objects = Objects { new, old };
    let ruling = rules::ruling(&mut world, &side.rules, objects, 0)?;
    world.assume_stable(&subject.stable, objects).map_err(one)?;
    let mut pins = Vec::new();
    for (object, old_object) in requests {
        let mut parts = Vec::new();
        world.pin(new, object, &mut parts).map_err(one)?;
        if let (Some(old), Some(old_object)) = (old, old_object) {
            world.pin(old, old_object, &mut parts).map_err(one)?;
        }
        pins.push(world.terms.and(&parts));
    }
    let asked: Vec<Term> = pins.iter().chain([&ruling.denied, &ruling.failed]).copied().collect();
    world.settle(&asked);
    let mut roots = world.assumed.clone();
    roots.extend([ruling.denied, ruling.failed]);
    roots.extend(&pins);
    let mut script = String::from("(set-option :produce-models true)\n(set-logic ALL)\n");
    world.terms.write(&roots, &mut script);
    for assumed in &world.assumed {
        let _ = writeln!(script, "(assert {})", world.terms.name(*assumed));
    }
    let (denied, failed) = (world.terms.name(ruling.denied), world.terms.name(ruling.failed));
    for pin in pins {
        let _ = writeln!(script, "(push 1)\n(assert {})\n(check-sat)", world.terms.name(pin));
        for asked in [&denied, &failed] {
            let _ = writeln!(script, "(push 1)\n(assert {asked})\n(check-sat)\n(pop 1)");
        }
        script.push_str("(pop 1)\n");
    }
    Ok(script)
}

impl World<'_> {
    /// Returns the conditions under which a node has this value, limited to the parts that some rule reads.
    fn pin(&mut self, id: NodeId, value: &Json, parts: &mut Vec<Term>) -> Result<(), Undecided> {
        let node = self.node(id)?.clone();
        if value.is_null() {
            parts.push(node.null);
            return Ok(());
        }
        parts.push(self.terms.not(node.null));
        let never = self.terms.bool(false);
        match (node.form, value) {
            (None | Some(Form::Any), _) => {}
            (Some(Form::Bool(term)), Json::Bool(value)) => {
                let value = self.terms.bool(*value);
                parts.push(self.terms.eq(term, value));
            }
            (Some(Form::Int(term)), Json::Number(number)) => self.pin_int(term, number.as_i64(), parts),
            (Some(Form::Text(term)), Json::String(text)) => {
                let text = self.constant(text)?;
                parts.push(self.terms.eq(term, text));
            }
            (Some(Form::IntOrText { is_int, int, .. }), Json::Number(number)) => {
                parts.push(is_int);
                self.pin_int(int, number.as_i64(), parts);
            }
            (Some(Form::IntOrText { is_int, text, .. }), Json::String(value)) => {
                parts.push(self.terms.not(is_int));
                let value = self.constant(value)?;
                parts.push(self.terms.eq(text, value));
            }
            (Some(Form::Object(known)), Json::Object(map)) => {
                for (name, child) in known {
                    let present = self.node(child)?.present;
                    match map.get(&*name) {
                        Some(value) => {
                            parts.push(present);
                            self.pin(child, value, parts)?;
                        }
                        None => parts.push(self.terms.not(present)),
                    }
                }
            }
            (Some(Form::List { length, items }), Json::Array(values)) if values.len() <= items.len() => {
                self.pin_int(length, i64::try_from(values.len()).ok(), parts);
                for (item, value) in items.into_iter().zip(values) {
                    self.pin(item, value, parts)?;
                }
            }
            (Some(Form::Map { length, entries }), Json::Object(map)) if map.len() <= entries.len() => {
                self.pin_int(length, i64::try_from(map.len()).ok(), parts);
                for ((key, entry), (name, value)) in entries.into_iter().zip(map) {
                    let name = self.constant(name)?;
                    parts.push(self.terms.eq(key, name));
                    self.pin(entry, value, parts)?;
                }
            }
            _ => parts.push(never),
        }
        Ok(())
    }

    fn pin_int(&mut self, term: Term, value: Option<i64>, parts: &mut Vec<Term>) {
        let pinned = match value {
            Some(value) => {
                let value = self.terms.int(value);
                self.terms.eq(term, value)
            }
            None => self.terms.bool(false),
        };
        parts.push(pinned);
    }
}
