//! Merges an applied configuration into a live object: nothing is removed, and the configuration's values win.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::path::Element;
use super::super::schema::{Form, List, ListRelation, Map, TypeId};
use super::{Typing, item, items, members, no_items, no_members};
use crate::{interrupt, object};

impl Typing<'_> {
    #[must_use]
    pub fn merge(&self, live: &Value, config: &Value) -> Value {
        self.merge_values(self.root, Some(live), Some(config)).unwrap_or(Value::Null)
    }

    fn merge_values(&self, kind: TypeId, live: Option<&Value>, config: Option<&Value>) -> Option<Value> {
        interrupt::checkpoint();
        match self.schema.form(kind, config.or(live)) {
            Some(Form::Map(map)) if !map.atomic && !no_members(live, config) => {
                self.merge_members(map, live, config)
            }
            Some(Form::List(list)) if list.relation != ListRelation::Atomic && !no_items(live, config) => {
                self.merge_items(list, items(live), items(config))
            }
            _ => config.or(live).map(object::copied),
        }
    }

    fn merge_members(&self, map: &Map, live: Option<&Value>, config: Option<&Value>) -> Option<Value> {
        let (live, config) = (members(live), members(config));
        let mut merged: Vec<(String, Value)> = Vec::new();
        let added = |name: &&String| live.is_none_or(|live| !live.contains_key(*name));
        let names = config.into_iter().flat_map(serde_json::Map::keys).filter(added);
        for name in live.into_iter().flat_map(serde_json::Map::keys).chain(names) {
            let Some((kind, _)) = map.member(name) else { continue };
            let (old, new) =
                (live.and_then(|members| members.get(name)), config.and_then(|members| members.get(name)));
            if let Some(value) = self.merge_values(kind, old, new) {
                merged.push((name.clone(), value));
            }
        }
        (!merged.is_empty()).then(|| merged.into_iter().collect())
    }

    fn merge_items(&self, list: &List, live: &[Value], config: &[Value]) -> Option<Value> {
        let live = item::elements(self.schema, list, live);
        let config = item::elements(self.schema, list, config);
        let order = merged_order(&live, &config);
        let new: BTreeMap<&Element, &Value> = config.iter().map(|(element, item)| (element, *item)).collect();
        let mut old: BTreeMap<&Element, Option<&Value>> = BTreeMap::new();
        for (element, item) in &live {
            // Live items with the same key are replaced by the applied one.
            old.entry(element).and_modify(|known| *known = None).or_insert(Some(item));
        }
        let mut merged: Vec<Value> = order
            .into_iter()
            .filter_map(|place| match place {
                Place::Live(index) => {
                    let item = live.get(index).map(|(_, item)| *item);
                    self.merge_values(list.element, item, None)
                }
                Place::Merged(element) => {
                    let live = old.get(element).copied().flatten();
                    self.merge_values(list.element, live, new.get(element).copied())
                }
            })
            .collect();
        merged.shrink_to_fit();
        (!merged.is_empty()).then_some(Value::Array(merged))
    }
}

/// An item of the merged list.
enum Place<'v> {
    /// The live item with this index, which is not in the configuration.
    Live(usize),
    /// An item that is in the configuration.
    Merged(&'v Element),
}

/// Orders the merged list: applied items keep their order, and other live items keep their positions between them.
fn merged_order<'v>(live: &'v [(Element, &Value)], config: &'v [(Element, &Value)]) -> Vec<Place<'v>> {
    let in_live: BTreeSet<&Element> = live.iter().map(|(element, _)| element).collect();
    let in_config: BTreeSet<&Element> = config.iter().map(|(element, _)| element).collect();
    let mut shared = config.iter().map(|(element, _)| element).filter(|element| in_live.contains(element));
    let mut next_shared = shared.next();
    let mut placed: BTreeSet<&Element> = BTreeSet::new();
    let mut order = Vec::with_capacity(live.len() + config.len());
    let (mut at_live, mut at_config) = (0, 0);
    loop {
        let old = live.get(at_live).map(|(element, _)| element);
        let new = config.get(at_config).map(|(element, _)| element);
        match (old, new) {
            (None, None) => return order,
            (Some(old), Some(new)) if old == new => {
                placed.insert(new);
                order.push(Place::Merged(new));
                at_live += 1;
                at_config += 1;
                next_shared = shared.next();
            }
            // A shared item out of turn: it is placed where the configuration has it.
            (Some(old), Some(_))
                if in_config.contains(old) && next_shared.is_some_and(|next| next != old) =>
            {
                at_live += 1;
            }
            (Some(old), _) if !in_config.contains(old) => {
                order.push(Place::Live(at_live));
                at_live += 1;
            }
            (old, new) => {
                if old.is_some_and(|old| placed.contains(old)) {
                    at_live += 1;
                }
                let Some(new) = new else { continue };
                placed.insert(new);
                order.push(Place::Merged(new));
                at_config += 1;
                if next_shared == Some(new) {
                    next_shared = shared.next();
                }
            }
        }
    }
}
