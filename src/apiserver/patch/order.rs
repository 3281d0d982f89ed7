//! Orders the items of a merged list: by the patch, and then by its `$setElementOrder`.

use std::collections::HashMap;

use serde_json::Value;

use super::merge_key::{PatchError, key_of};
use crate::interrupt;

/// The items of a merged list, each with the former place of the first item of the same key; None if there was
/// none.
pub(super) struct Merged {
    items: Vec<(Option<usize>, Value)>,
}

/// Returns for each item the place of the first one with the same key. Items without the key differ from all others.
pub(super) fn first_places(items: &[Value], merge_key: &str) -> Vec<usize> {
    let mut first: HashMap<&Value, usize> = HashMap::with_capacity(items.len());
    let places = items.iter().enumerate().map(|(place, item)| match key_of(item, merge_key) {
        Ok(key) => *first.entry(key).or_insert(place),
        Err(_) => place,
    });
    places.collect()
}

impl Merged {
    pub(super) fn new(items: impl Iterator<Item = (Option<usize>, Value)>) -> Self {
        Self { items: items.collect() }
    }

    pub(super) fn into_values(self) -> Vec<Value> {
        self.items.into_iter().map(|(_, item)| item).collect()
    }

    /// Orders the items by `order`, and places those that only the server has between them: each before
    /// the first one that it preceded, as far as both orders allow.
    ///
    /// # Errors
    /// If an item lacks the key.
    pub(super) fn in_order<'o>(
        self,
        order: impl IntoIterator<Item = &'o Value> + Clone,
        merge_key: &str,
    ) -> Result<Self, PatchError> {
        for wanted in order.clone() {
            key_of(wanted, merge_key)?;
        }
        for (_, item) in &self.items {
            key_of(item, merge_key)?;
        }
        Ok(self.arranged(order, merge_key))
    }

    /// Like [`Self::in_order`], but items without the key are equal to each other.
    pub(super) fn arranged<'o>(self, order: impl IntoIterator<Item = &'o Value>, merge_key: &str) -> Self {
        let mut ranks: HashMap<Option<&Value>, usize> = HashMap::new();
        for (rank, wanted) in order.into_iter().enumerate() {
            ranks.entry(key_of(wanted, merge_key).ok()).or_insert(rank);
        }
        // Places are sorted instead of items, to avoid further copies of large lists.
        let (mut named, mut others) = (Vec::new(), Vec::new());
        for (at, (place, item)) in self.items.iter().enumerate() {
            interrupt::checkpoint();
            match ranks.get(&key_of(item, merge_key).ok()) {
                Some(rank) => named.push((*rank, *place, at)),
                // New items stay behind existing ones, where they were appended.
                None => others.push((place.unwrap_or(usize::MAX), *place, at)),
            }
        }
        named.sort_by_key(|(rank, ..)| *rank);
        others.sort_by_key(|(place, ..)| *place);
        let mut line = Vec::with_capacity(self.items.len());
        let mut others = others.into_iter().peekable();
        for (_, place, at) in named {
            let stands_before = |other: &(usize, Option<usize>, usize)| matches!((other.1, place), (Some(other), Some(item)) if other < item);
            while let Some((.., other)) = others.next_if(stands_before) {
                line.push(other);
            }
            line.push(at);
        }
        line.extend(others.map(|(.., at)| at));
        let mut items: Vec<_> = self.items.into_iter().map(Some).collect();
        let mut arranged = Vec::with_capacity(items.len());
        arranged.extend(line.into_iter().filter_map(|at| items.get_mut(at)?.take()));
        Self { items: arranged }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_only_the_server_has_stays_before_what_stood_behind_it() {
        let ordered = |items: &[&str], order: &[&str]| -> Vec<Value> {
            let items: Vec<Value> = items.iter().map(|item| json!(item)).collect();
            let order: Vec<Value> = order.iter().map(|item| json!(item)).collect();
            let places = first_places(&items, "");
            let merged = Merged::new(places.into_iter().map(Some).zip(items));
            merged.in_order(&order, "").unwrap().into_values()
        };
        assert_eq!(ordered(&["a", "b", "c", "d"], &["d", "b"]), ["a", "c", "d", "b"]);
        assert_eq!(ordered(&["a", "b", "c"], &["b", "a"]), ["b", "a", "c"]);
        assert_eq!(ordered(&["a", "b", "c"], &[]), ["a", "b", "c"]);
    }

    #[test]
    fn items_of_one_key_stand_where_the_first_does() {
        let items = [json!({"port": 53, "protocol": "UDP"}), json!({"port": 80}), json!({"port": 53})];
        let places = first_places(&items, "port");
        assert_eq!(places, [0, 1, 0]);
        let merged = Merged::new(places.into_iter().map(Some).zip(items.clone()));
        let ordered = merged.in_order(&[json!({"port": 80})], "port").unwrap().into_values();
        assert_eq!(ordered, [items[0].clone(), items[2].clone(), items[1].clone()]);
    }
}
