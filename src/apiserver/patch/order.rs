//! Orders the items of a merged list by the patch's `$setElementOrder`.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::interrupt;

/// Puts the items that `order` names into that order. Items that only the server has keep their places relative to
/// the item that stood before them.
pub(super) fn in_order(
    items: Vec<Value>,
    patch: &[Value],
    order: Option<&[Value]>,
    merge_key: &str,
) -> Vec<Value> {
    let Some(order) = order else { return items };
    let places = places(&items, patch, order, merge_key);
    let mut items: Vec<Option<Value>> = items.into_iter().map(Some).collect();
    places.into_iter().filter_map(|place| items.get_mut(place)?.take()).collect()
}

/// Where the items of the list in its new order stand in the old one.
fn places(items: &[Value], patch: &[Value], order: &[Value], merge_key: &str) -> Vec<usize> {
    let mut ranks: HashMap<&Value, usize> = HashMap::with_capacity(order.len());
    for (rank, wanted) in order.iter().enumerate() {
        ranks.entry(identity(wanted, merge_key)).or_insert(rank);
    }
    let patched: HashSet<&Value> = patch.iter().map(|change| identity(change, merge_key)).collect();
    let rank = |item: &Value| ranks.get(identity(item, merge_key)).copied();
    let mut listed: Vec<(usize, usize)> =
        items.iter().enumerate().filter_map(|(place, item)| Some((rank(item)?, place))).collect();
    listed.sort_unstable();
    let mut line = Line::new(items, listed.into_iter().map(|(_, place)| place));
    // The nearest item before the one that is looked at which is ordered or the server's: those are in the line.
    let mut before = None;
    let mut anchors: HashMap<&Value, Option<usize>> = HashMap::new();
    for (place, item) in items.iter().enumerate() {
        interrupt::checkpoint();
        let ranked = rank(item).is_some();
        if !ranked {
            // One that stands in the list twice is put beside the first of its kind.
            let anchor = *anchors.entry(item).or_insert(before);
            line.insert_behind(anchor, place);
        }
        if ranked || !patched.contains(identity(item, merge_key)) {
            before = Some(place);
        }
    }
    line.into_places()
}

/// What tells an item from others.
fn identity<'v>(item: &'v Value, merge_key: &str) -> &'v Value {
    match merge_key {
        "" => item,
        key => item.get(key).unwrap_or(&Value::Null),
    }
}

/// Items in a row, each of which knows the next.
struct Line<'v> {
    items: &'v [Value],
    first: Option<usize>,
    next: Vec<Option<usize>>,
    /// Of items that are equal, the one that comes first in the row.
    foremost: HashMap<&'v Value, usize>,
}

impl<'v> Line<'v> {
    fn new(items: &'v [Value], places: impl DoubleEndedIterator<Item = usize>) -> Self {
        let mut line = Self { items, first: None, next: vec![None; items.len()], foremost: HashMap::new() };
        for place in places.rev() {
            line.insert_behind(None, place);
        }
        line
    }

    /// Puts the item at `place` behind the first one that equals the item at `anchor`, or before all others.
    fn insert_behind(&mut self, anchor: Option<usize>, place: usize) {
        let anchor = anchor.and_then(|anchor| self.foremost.get(self.items.get(anchor)?).copied());
        let behind = match anchor.and_then(|anchor| self.next.get_mut(anchor)) {
            Some(slot) => slot.replace(place),
            None => self.first.replace(place),
        };
        if let (Some(slot), Some(item)) = (self.next.get_mut(place), self.items.get(place)) {
            *slot = behind;
            self.foremost.insert(item, place);
        }
    }

    fn into_places(self) -> Vec<usize> {
        let step = |place: &usize| self.next.get(*place).copied().flatten();
        std::iter::successors(self.first, step).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// As it is said: every item looked for in every list.
    fn plainly(items: &[Value], patch: &[Value], order: &[Value], merge_key: &str) -> Vec<Value> {
        let rank = |item: &Value| {
            order.iter().position(|wanted| identity(wanted, merge_key) == identity(item, merge_key))
        };
        let (mut listed, unlisted): (Vec<_>, Vec<_>) =
            items.iter().cloned().partition(|item| rank(item).is_some());
        listed.sort_by_key(|item| rank(item));
        let from_server = |item: &Value| {
            !patch.iter().any(|change| identity(change, merge_key) == identity(item, merge_key))
        };
        for item in unlisted {
            let before = items.iter().position(|other| *other == item).unwrap_or_default();
            let earlier = items.iter().take(before).rev();
            let anchor = earlier
                .filter(|other| from_server(other) || rank(other).is_some())
                .find_map(|other| listed.iter().position(|placed| placed == other));
            listed.insert(anchor.map_or(0, |anchor| anchor + 1), item);
        }
        listed
    }

    #[test]
    fn the_order_is_the_one_that_looking_for_every_item_gives() {
        let mut state = 7_u64;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        for round in 0..5_000 {
            let merge_key = if round % 2 == 0 { "" } else { "name" };
            let mut list = |most: u64| -> Vec<Value> {
                let length = below(most);
                let mut item = || match (merge_key, below(8), below(3)) {
                    ("", name, _) => json!(name),
                    (_, 7, value) => json!({"value": value}),
                    (_, name, value) => json!({"name": name, "value": value}),
                };
                (0..length).map(|_| item()).collect()
            };
            let (items, patch, order) = (list(10), list(5), list(6));
            let expected = plainly(&items, &patch, &order, merge_key);
            let found = in_order(items.clone(), &patch, Some(&order), merge_key);
            assert_eq!(found, expected, "{items:?} with {patch:?} in the order of {order:?}");
        }
    }
}
