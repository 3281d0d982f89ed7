//! Reads, sums and compares the resource requests and limits of containers and pods.

use std::collections::BTreeMap;

use admit_apimachinery::quantity::Quantity;
use serde_json::Value;

use super::pods::{items, text};

/// Amounts by the name of the resource.
pub(super) type Amounts<'v> = BTreeMap<&'v str, Quantity<'v>>;

/// Larger amounts are compared as whole numbers, as in Go's `Quantity`.
const GREATEST_IN_THOUSANDTHS: i64 = i64::MAX / 1_000;

/// Returns the amounts of the map at this path. Invalid amounts are skipped: they were refused when written.
pub(super) fn amounts<'v>(value: &'v Value, pointer: &str) -> Amounts<'v> {
    let map = value.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
    map.filter_map(|(name, amount)| Some((name.as_str(), read(amount)?))).collect()
}

fn read(amount: &Value) -> Option<Quantity<'_>> {
    match amount {
        Value::String(text) => Quantity::parse(text).ok(),
        Value::Number(number) => number.as_i64().map(Quantity::of_integer),
        _ => None,
    }
}

/// Adds each amount of `more`. A sum that would have too many digits is left unchanged.
pub(super) fn add<'v>(sums: &mut Amounts<'v>, more: &Amounts<'v>) {
    for (name, amount) in more {
        match sums.get_mut(name) {
            None => {
                sums.insert(name, amount.clone());
            }
            Some(sum) => {
                if let Ok(next) = sum.plus(amount) {
                    *sum = next;
                }
            }
        }
    }
}

/// Sets each amount to the greater of both.
fn raise<'v>(greatest: &mut Amounts<'v>, others: &Amounts<'v>) {
    for (name, amount) in others {
        if greatest.get(name).is_none_or(|known| known.compare(amount).is_lt()) {
            greatest.insert(name, amount.clone());
        }
    }
}

/// Returns the total requests or limits of a pod (`side`: `requests`, `limits`), without overhead: the sum of its
/// containers and sidecars, or the largest init container with the sidecars before it if that is more; pod-level CPU,
/// memory and huge pages override the total.
pub(super) fn of_pod<'v>(pod: &'v Value, side: &str) -> Amounts<'v> {
    let pointer = format!("/resources/{side}");
    let mut sums = Amounts::new();
    for container in items(pod, "/spec/containers") {
        add(&mut sums, &amounts(container, &pointer));
    }
    let (mut running, mut starting) = (Amounts::new(), Amounts::new());
    for container in items(pod, "/spec/initContainers") {
        let own = amounts(container, &pointer);
        if text(container, "/restartPolicy") == "Always" {
            add(&mut sums, &own);
            add(&mut running, &own);
            raise(&mut starting, &running);
        } else {
            let mut with_running = own;
            add(&mut with_running, &running);
            raise(&mut starting, &with_running);
        }
    }
    raise(&mut sums, &starting);
    for (name, amount) in amounts(pod, &format!("/spec/resources/{side}")) {
        if matches!(name, "cpu" | "memory") || name.starts_with("hugepages-") {
            sums.insert(name, amount);
        }
    }
    sums
}

/// Converts amounts to comparable numbers: thousandths, or whole units if one is too large for that; fractions are
/// rounded up.
pub(super) fn comparable<const N: usize>(amounts: [Option<&Quantity<'_>>; N]) -> [i64; N] {
    let whole = amounts.map(|amount| amount.map_or(0, |amount| amount.scaled_value(0)));
    if whole.iter().all(|value| *value <= GREATEST_IN_THOUSANDTHS) {
        amounts.map(|amount| amount.map_or(0, |amount| amount.scaled_value(3)))
    } else {
        whole
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(amounts: &Amounts<'_>) -> Vec<String> {
        amounts.iter().map(|(name, amount)| format!("{name}={amount}")).collect()
    }

    #[test]
    fn init_containers_count_where_they_ask_for_more() {
        let asks = |cpu: &str| json!({"requests": {"cpu": cpu}});
        let pod = json!({"spec": {
            "containers": [{"resources": asks("1")}, {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}],
            "initContainers": [{"resources": asks("1")}, {"restartPolicy": "Always", "resources": asks("200m")},
                {"resources": asks("3")}],
        }});
        assert_eq!(told(&of_pod(&pod, "requests")), ["cpu=3200m", "memory=1Gi"]);
        assert!(of_pod(&pod, "limits").is_empty());
    }

    #[test]
    fn pods_as_a_whole_have_the_last_word() {
        let pod = json!({"spec": {"containers": [{"resources": {"requests": {"cpu": "1", "a.dev/x": "1"}}}],
            "resources": {"requests": {"cpu": "2", "a.dev/x": "7"}}}});
        assert_eq!(told(&of_pod(&pod, "requests")), ["a.dev/x=1", "cpu=2"]);
    }
}
