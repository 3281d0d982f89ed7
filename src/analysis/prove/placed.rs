//! Evaluates the validation rules of a schema at each node of arbitrary objects where they apply.

use std::rc::Rc;

use admit_cel::syntax::Ast;
use admit_policy::crd::rules::{RuleEnv, decl_type};
use admit_policy::schema::{ListType, Rule, Schema, SchemaType};

use super::changes::joined;
use super::document::{Form, NodeId, Origin, World};
use super::eval::{Evaluator, Scope};
use super::fields;
use super::pair::{Pair, are_keyed_alike, stripped};
use super::term::Term;
use super::told::Told;
use super::value::{Value, without_null};
use super::view::{UNDECLARED, means_less_untyped};
use super::{Undecided, undecided};

/// The new and the old object of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Objects {
    pub(super) new: NodeId,
    pub(super) old: Option<NodeId>,
}

/// A schema with rules, and the objects that they validate.
pub(super) struct Asked<'r> {
    pub(super) schema: &'r Schema,
    /// Path of the schema in the definition.
    pub(super) place: &'r str,
    pub(super) objects: Objects,
    pub(super) side: usize,
    pub(super) before: Option<Before<'r>>,
}

/// The old schema to compare with: rules that were the same in it are skipped.
#[derive(Clone, Copy)]
pub(super) struct Before<'r> {
    pub(super) schema: &'r Schema,
    /// Whether ratcheting applies: unchanged values are validated only by transition rules.
    pub(super) forgives: bool,
    /// The only property of the object that may have changed.
    pub(super) changed: Option<&'static str>,
}

/// The result of one rule at one node.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) asked: Term,
    pub(super) error: Term,
    pub(super) holds: Term,
    pub(super) place: PlaceOf,
}

/// The location of a rule: its path in the definition, and the field in objects.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct PlaceOf {
    pub(super) document: String,
    pub(super) object: String,
    pub(super) rule: Told,
    pub(super) looks_back: bool,
    /// Whether ratcheting tolerates a violation because the value is unchanged; an evaluation error still counts.
    pub(super) is_forgiven: bool,
}

impl Verdict {
    pub(super) fn denied(&self, world: &mut World<'_>) -> Term {
        let broken = world.terms.not(self.holds);
        let wrong = world.terms.or(&[self.error, broken]);
        world.terms.and(&[self.asked, wrong])
    }
}

/// Rules that cannot be translated: the reason, and where and when they would run.
pub(super) type Open = (Undecided, Option<(PlaceOf, Term)>);

/// A schema node with rules, and the objects' nodes there.
struct Place<'r> {
    schema: &'r Schema,
    before: Option<&'r Schema>,
    /// Path in the schema.
    path: String,
    /// Path in objects, without indices and keys.
    field: String,
    is_root: bool,
    /// Whether the value is unchanged, and whether ratcheting recognises that.
    is_same: bool,
    is_seen: bool,
    /// Whether the default of the node or of one above it is another one than before, so that rules may meet values, old or new, which
    /// were not there before.
    is_redefaulted: bool,
    node: NodeId,
    old: Old,
}

/// The old value correlated with a node.
#[derive(Clone, Copy)]
enum Old {
    None,
    Node(NodeId),
    /// There may be one, but which is not modelled.
    Somewhere,
}

/// Reports whether rules exist under `allOf`, which servers run too.
fn has_nested_rules(schema: &Schema) -> bool {
    let has = |part: &Schema| part.has_rules() || has_nested_rules(part);
    let below = schema.properties.values().chain(schema.items.as_deref()).chain(schema.additional_schema());
    schema.checks.all_of.iter().any(has) || below.into_iter().any(has_nested_rules)
}

impl Asked<'_> {
    /// Returns the result of each rule, and the rules that cannot be translated.
    pub(super) fn verdicts(&self, world: &mut World<'_>) -> (Vec<Verdict>, Vec<Open>) {
        let old = self.objects.old.map_or(Old::None, Old::Node);
        let place = Place {
            schema: self.schema,
            before: self.before.map(|before| before.schema),
            path: self.place.to_owned(),
            field: String::new(),
            is_root: true,
            is_same: false,
            is_seen: false,
            is_redefaulted: false,
            node: self.objects.new,
            old,
        };
        let mut walk = Walk { world, verdicts: Vec::new(), undecided: Vec::new(), asked: self };
        if has_nested_rules(self.schema) {
            walk.undecided.push((undecided("rules below `allOf`").of(self.side, self.place), None));
        }
        if let Err(undecided) = walk.node(&place) {
            walk.undecided.push((undecided.of(self.side, self.place), None));
        }
        (walk.verdicts, walk.undecided)
    }
}

struct Walk<'w, 's, 'r> {
    world: &'w mut World<'s>,
    verdicts: Vec<Verdict>,
    undecided: Vec<Open>,
    asked: &'r Asked<'r>,
}

impl<'s, 'r> Walk<'_, 's, 'r> {
    fn node(&mut self, place: &Place<'r>) -> Result<(), Undecided> {
        let schema = place.schema;
        if !schema.has_rules() {
            return Ok(());
        }
        self.own_rules(place)?;
        for (name, child) in schema.properties.iter().filter(|(_, child)| child.has_rules()) {
            let path = format!("{}.properties[{name}]", place.path);
            if self.world.may_hold_anything(place.node) {
                return Err(undecided(UNDECLARED).of(self.asked.side, &path));
            }
            let Some(node) = self.world.property(place.node, name)? else {
                return Err(undecided("rules of an unsupported field").of(self.asked.side, &path));
            };
            let old = match place.old {
                Old::Node(old) => self.world.property(old, name)?.map_or(Old::None, Old::Node),
                other => other,
            };
            let before = place.before.and_then(|before| before.child(name));
            let mut below = below(place, child, before, path, joined(&place.field, name));
            if place.is_root {
                let changed = self.asked.before.and_then(|before| before.changed);
                below.is_same = changed != Some(&**name);
                below.is_seen = below.is_same && Pair { new: child, old: before }.is_seen_unchanged();
            }
            self.node(&Place { node, old, ..below })?;
        }
        self.items(place)?;
        self.entries(place)
    }

    fn items(&mut self, place: &Place<'r>) -> Result<(), Undecided> {
        let Some(child) = place.schema.items.as_deref().filter(|child| child.has_rules()) else {
            return Ok(());
        };
        let path = format!("{}.items", place.path);
        let Form::List { items, .. } = self.world.force(place.node)? else {
            return Err(undecided("rules of an unsupported list").of(self.asked.side, &path));
        };
        if self.world.may_hold_anything(place.node) {
            return Err(undecided(UNDECLARED).of(self.asked.side, &path));
        }
        // Items that gain an old value, or get another one, are validated anew.
        let known = place.before.filter(|before| are_keyed_alike(before, place.schema));
        let before = known.and_then(|before| before.items.as_deref());
        let forgives = self.asked.before.is_some_and(|before| before.forgives);
        let is_anew = forgives && Pair { new: place.schema, old: place.before }.is_keyed_anew();
        let pair = Pair { new: child, old: place.before.and_then(|before| before.items.as_deref()) };
        for (at, node) in items.iter().copied().enumerate() {
            let old = match place.old {
                // Items of atomic lists and sets have no old values.
                Old::None => Old::None,
                _ if place.schema.list_type != Some(ListType::Map) => Old::None,
                Old::Somewhere => Old::Somewhere,
                Old::Node(list) => self.old_item(place, list, node)?,
            };
            let below = below(place, child, before, path.clone(), format!("{}[]", place.field));
            if is_anew {
                // An item without a counterpart by keys is new.
                let earlier = items.get(..at);
                let lost = self.world.lost(&place.schema.list_map_keys, earlier, node)?;
                let asked = self.verdicts.len();
                self.node(&Place { node, old, is_same: false, is_seen: false, ..below })?;
                let is_seen = place.is_seen || (place.is_same && pair.is_seen_unchanged());
                for verdict in self.verdicts.iter_mut().skip(asked).filter(|_| is_seen) {
                    if !verdict.place.looks_back {
                        let found = self.world.terms.not(lost);
                        verdict.holds = self.world.terms.or(&[verdict.holds, found]);
                    }
                }
                continue;
            }
            self.node(&Place { node, old, ..below })?;
        }
        Ok(())
    }

    /// Finds the item of the old list with the keys of a new one.
    fn old_item(&mut self, place: &Place<'_>, list: NodeId, item: NodeId) -> Result<Old, Undecided> {
        let Form::List { items, .. } = self.world.force(list)? else { return Ok(Old::Somewhere) };
        let (mut sources, mut earlier) = (Vec::new(), Vec::new());
        for old in items {
            let Some(same) = self.world.same_keys_of(&place.schema.list_map_keys, item, old)? else {
                return Ok(Old::Somewhere);
            };
            let before = self.world.terms.or(&earlier);
            let is_first = self.world.terms.not(before);
            let is_it = self.world.terms.and(&[same, is_first]);
            if old == item && self.world.terms.known_bool(is_it) == Some(true) {
                return Ok(Old::Node(old));
            }
            sources.push((is_it, Origin::Node(old)));
            earlier.push(same);
        }
        self.one_of(list, sources)
    }

    fn one_of(&mut self, above: NodeId, sources: Vec<(Term, Origin<'s>)>) -> Result<Old, Undecided> {
        let Some((_, Origin::Node(first))) = sources.first().copied() else { return Ok(Old::None) };
        let (schema, here) = (self.world.node(first)?.schema, self.world.node(above)?.here);
        Ok(Old::Node(self.world.made(schema, here, sources.into(), false)?))
    }

    fn entries(&mut self, place: &Place<'r>) -> Result<(), Undecided> {
        let Some(child) = place.schema.additional_schema().filter(|child| child.has_rules()) else {
            return Ok(());
        };
        let path = format!("{}.additionalProperties", place.path);
        let Form::Map { entries, .. } = self.world.force(place.node)? else {
            return Err(undecided("rules of an unsupported map").of(self.asked.side, &path));
        };
        let before = place.before.and_then(|before| before.additional_schema());
        if self.world.partial.contains(&place.node) || self.world.may_hold_anything(place.node) {
            return Err(undecided(UNDECLARED).of(self.asked.side, &path));
        }
        for (key, node) in entries {
            let old = match place.old {
                Old::Node(map) if map == place.node => Old::Node(node),
                Old::Node(map) => self.old_entry(map, key)?,
                other => other,
            };
            let below = below(place, child, before, path.clone(), format!("{}[]", place.field));
            self.node(&Place { node, old, ..below })?;
        }
        Ok(())
    }

    fn old_entry(&mut self, map: NodeId, key: Term) -> Result<Old, Undecided> {
        let Form::Map { entries, .. } = self.world.force(map)? else { return Ok(Old::Somewhere) };
        let mut sources = Vec::new();
        for (old_key, old) in entries {
            let present = self.world.node(old)?.present;
            let same = self.world.terms.eq(old_key, key);
            sources.push((self.world.terms.and(&[present, same]), Origin::Node(old)));
        }
        self.one_of(map, sources)
    }

    fn own_rules(&mut self, place: &Place<'r>) -> Result<(), Undecided> {
        if place.schema.rules.is_empty() {
            return Ok(());
        }
        let side = self.asked.side;
        let is_resource = place.is_root || place.schema.embedded_resource;
        let Some(decl) = decl_type(place.schema, is_resource) else {
            return Err(undecided("rules of untyped data").of(side, &place.path));
        };
        let env = RuleEnv::new(&decl);
        let known_before = place.before.filter(|_| !place.is_redefaulted);
        let was = known_before.filter(|before| stripped(before) == stripped(place.schema));
        for (at, rule) in place.schema.rules.iter().enumerate() {
            let document = if place.path.starts_with("--") {
                place.path.clone()
            } else {
                format!("{}.x-kubernetes-validations[{at}].rule", place.path)
            };
            let said_before = was.is_some_and(|was| was.rules.iter().any(|known| says_the_same(known, rule)));
            if rule.rule.trim().is_empty() || said_before {
                continue;
            }
            let is_known = |known: &Schema| known.rules.iter().any(|known| says_the_same(known, rule));
            let known = known_before.filter(|before| is_known(before));
            let here = self.world.node(place.node)?.here;
            let object = place.field.clone();
            let mut place_of =
                PlaceOf { document, object, rule: Told::of(rule), looks_back: false, is_forgiven: false };
            let checked = match env.checked(rule) {
                Ok(checked) => checked,
                Err(error) => {
                    let undecided = undecided(error.to_string()).of(side, &place_of.document);
                    self.undecided.push((undecided, Some((place_of, here))));
                    continue;
                }
            };
            if known.is_some_and(|known| reads_the_same(checked.ast(), known, place.schema)) {
                continue;
            }
            place_of.looks_back = checked.uses_variable("oldSelf");
            let forgives = self.asked.before.is_some_and(|before| before.forgives);
            place_of.is_forgiven = forgives && place.is_seen && !place_of.looks_back;
            let is_optional = rule.optional_old_self == Some(true);
            if is_optional && place_of.looks_back && reads_plain_otherwise(checked.ast(), place) {
                let untyped = undecided("`oldSelf` without its declared types, as `optionalOldSelf` has it");
                self.undecided.push((untyped.of(side, &place_of.document), Some((place_of, here))));
                continue;
            }
            match self.rule(place, checked.ast(), &place_of, is_optional) {
                Ok(Some(verdict)) => self.verdicts.push(verdict),
                Ok(None) => {}
                Err(undecided) => {
                    let undecided = undecided.of(side, &place_of.document);
                    self.undecided.push((undecided, Some((place_of, here))));
                }
            }
        }
        Ok(())
    }

    fn rule(
        &mut self,
        place: &Place<'_>,
        ast: &Ast,
        place_of: &PlaceOf,
        is_optional: bool,
    ) -> Result<Option<Verdict>, Undecided> {
        let mut asked = self.world.node(place.node)?.here;
        let mut scope = Scope::default();
        let (own, null) = (self.world.value_of_its_type(place.node)?, self.world.node(place.node)?.null);
        let mut wrong = vec![self.world.wrong_type(place.node)];
        let own = self.world.good(without_null(own, null));
        let own = self.world.read(own);
        scope.globals.insert("self", own);
        if place_of.looks_back {
            let old = match place.old {
                Old::Somewhere => {
                    return Err(undecided("`oldSelf` of an item that is correlated by its key"));
                }
                Old::None if !is_optional => return Ok(None),
                Old::None => (self.world.terms.bool(false), Value::Null),
                Old::Node(old) => {
                    let value = self.world.value_of_its_type(old)?;
                    let node = self.world.node(old)?.clone();
                    let is_wrong = self.world.wrong_type(old);
                    wrong.push(self.world.terms.and(&[node.here, is_wrong]));
                    (node.here, without_null(value, node.null))
                }
            };
            let (there, value) = old;
            if is_optional && value.may_be_unreadable() {
                return Err(undecided("a timestamp that may be absent"));
            }
            let value = if is_optional {
                Value::Optional(there, Rc::new(value))
            } else {
                asked = self.world.terms.and(&[asked, there]);
                value
            };
            let value = self.world.good(value);
            let value = self.world.read(value);
            scope.globals.insert("oldSelf", value);
        }
        if self.world.terms.known_bool(asked) == Some(false) {
            return Ok(None);
        }
        self.world.evaluate_at(self.asked.side, &place_of.document);
        let (error, holds) = Evaluator::new(self.world, &scope, ast).run()?;
        // A value of the wrong type cannot be evaluated.
        wrong.push(error);
        let error = self.world.terms.or(&wrong);
        let holds = if place_of.is_forgiven { self.world.terms.bool(true) } else { holds };
        Ok(Some(Verdict { asked, error, holds, place: place_of.clone() }))
    }
}

/// Returns the place of a child, without its nodes.
fn below<'r>(
    place: &Place<'r>,
    schema: &'r Schema,
    before: Option<&'r Schema>,
    path: String,
    field: String,
) -> Place<'r> {
    let is_seen = place.is_seen || (place.is_same && Pair { new: schema, old: before }.is_seen_unchanged());
    let default = before.and_then(|before| before.default.as_ref());
    Place {
        schema,
        before,
        path,
        field,
        is_root: false,
        is_same: place.is_same,
        is_seen,
        is_redefaulted: place.is_redefaulted || default != schema.default.as_ref(),
        node: place.node,
        old: Old::None,
    }
}

/// Reports whether the fields that a rule reads have equal schemas in both versions.
fn reads_the_same(ast: &Ast, before: &Schema, schema: &Schema) -> bool {
    let Some(names) = fields::read_by(ast, [before, schema]) else { return false };
    fields::of_these(&stripped(before), &names) == fields::of_these(&stripped(schema), &names)
}

/// Reports whether it matters to a rule that its optional `oldSelf` is plain JSON, as a server has it, where values are read through
/// their declared types here.
fn reads_plain_otherwise(ast: &Ast, place: &Place<'_>) -> bool {
    let holds_parts = matches!(place.schema.schema_type, Some(SchemaType::Object | SchemaType::Array));
    if !holds_parts || matches!(place.old, Old::None) {
        return false;
    }
    match fields::read_by(ast, [place.schema, place.schema]) {
        Some(names) => means_less_untyped(&fields::of_these(place.schema, &names)),
        // The metadata of a whole object has fields that are not declared.
        None => place.is_root || means_less_untyped(place.schema),
    }
}

/// Reports whether two rules reject the same values.
fn says_the_same(one: &Rule, other: &Rule) -> bool {
    one.rule == other.rule && (one.optional_old_self == Some(true)) == (other.optional_old_self == Some(true))
}
