//! Validates and sums resource requests and limits of containers and pods.

use std::collections::BTreeMap;

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::quantity::Quantity;
use serde_json::Value;

use super::{Pod, claims};
use crate::kinds::field::Field;
use crate::kinds::shared::resource_names::{self, HUGE_PAGES, is_huge_page, is_whole, may_be_overcommitted};

const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// The owner of the resources, which decides which names are allowed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Owner {
    Container,
    Pod,
}

/// Validates the resources of a container.
pub(super) fn of_container(resources: &Field<'_>, pod: &Pod<'_>, errors: &mut FieldErrors) {
    requirements(&resources.get("limits"), &resources.get("requests"), Owner::Container, errors);
    if uses_only_huge_pages(resources) {
        errors.add(|| resources.forbidden("HugePages require cpu or memory"));
    }
    claims::references(&resources.get("claims"), &pod.claims, errors);
}

/// Validates the overhead of a pod.
pub(super) fn overhead(overhead: &Field<'_>, errors: &mut FieldErrors) {
    // The error's path is that of limits.
    requirements(
        &overhead.get("limits").with(overhead.value()),
        &overhead.with(&Value::Null),
        Owner::Container,
        errors,
    );
}

fn uses_only_huge_pages(resources: &Field<'_>) -> bool {
    let names = || {
        ["limits", "requests"]
            .into_iter()
            .filter_map(|side| resources.get(side).map())
            .flat_map(|list| list.keys())
    };
    names().any(|name| is_huge_page(name)) && !names().any(|name| name == "cpu" || name == "memory")
}

fn requirements(limits: &Field<'_>, requests: &Field<'_>, owner: Owner, errors: &mut FieldErrors) {
    for (name, amount) in limits.entries() {
        resource(name, &amount, owner, errors);
        huge_pages(name, &amount, errors);
    }
    for (name, amount) in requests.entries() {
        resource(name, &amount, owner, errors);
        let limit = limits.key(name);
        match (Quantity::parse(amount.text()), Quantity::parse(limit.text())) {
            (Ok(asked), Ok(limit)) if limits.value().get(name).is_some() => {
                let order = asked.compare(&limit);
                let shown = asked.to_string();
                if !may_be_overcommitted(name) && order.is_ne() {
                    let why = format!("must be equal to {name} limit of {limit}");
                    errors.add(|| requests.invalid_as(shown.as_str(), why));
                } else if order.is_gt() {
                    let why = format!("must be less than or equal to {name} limit of {limit}");
                    errors.add(|| requests.invalid_as(shown.as_str(), why));
                }
            }
            _ if limits.value().get(name).is_none() && !may_be_overcommitted(name) => {
                errors.add(|| limits.required("Limit must be set for non overcommitable resources"));
            }
            _ => {}
        }
        huge_pages(name, &amount, errors);
    }
}

fn resource(name: &str, amount: &Field<'_>, owner: Owner, errors: &mut FieldErrors) {
    match owner {
        Owner::Container => resource_names::of_container(name, amount, errors),
        Owner::Pod
            if resource_names::any(name, amount, errors)
                && !["cpu", "memory"].contains(&name)
                && !is_huge_page(name) =>
        {
            let name = Value::from(name);
            errors.add(|| amount.with(&name).not_supported(&["cpu", HUGE_PAGES, "memory"]));
        }
        Owner::Pod => {}
    }
    let Ok(quantity) = Quantity::parse(amount.text()) else { return };
    if quantity.sign().is_lt() {
        errors.add(|| amount.invalid_as(quantity.to_string().as_str(), NOT_NEGATIVE));
    }
    if is_whole(name) && quantity.as_integer().is_none() {
        errors.add(|| amount.invalid_as(quantity.to_string().as_str(), "must be an integer"));
    }
}

fn huge_pages(name: &str, amount: &Field<'_>, errors: &mut FieldErrors) {
    let (Some(size), Ok(asked)) = (name.strip_prefix(HUGE_PAGES), Quantity::parse(amount.text())) else {
        return;
    };
    let size = Quantity::parse(size).ok().and_then(|size| size.as_integer()).unwrap_or(0);
    let divides = asked.as_integer().is_some_and(|asked| size > 0 && asked.checked_rem(size) == Some(0));
    if !divides {
        let shown = asked.to_string();
        let why = format!("{shown} is not positive integer multiple of {name}");
        errors.add(|| amount.invalid_as(shown.as_str(), why));
    }
}

/// Validates pod-level resources.
pub(super) fn of_pod(spec: &Field<'_>, pod: &Pod<'_>, errors: &mut FieldErrors) {
    let resources = spec.get("resources");
    if !resources.is_set() {
        return;
    }
    if spec.get("os").get("name").text() == "windows" {
        return errors.add(|| resources.forbidden("may not be set for a windows pod"));
    }
    let claims = resources.get("claims");
    if claims.is_set() {
        errors.add(|| claims.forbidden("claims may not be set for Resources at pod-level"));
    }
    requirements(&resources.get("limits"), &resources.get("requests"), Owner::Pod, errors);
    if uses_only_huge_pages(&resources) {
        errors.add(|| resources.forbidden("HugePages require cpu or memory"));
    }
    claims::references(&claims, &pod.claims, errors);
    consistency(spec, &resources, errors);
}

fn consistency(spec: &Field<'_>, resources: &Field<'_>, errors: &mut FieldErrors) {
    let requests = resources.get("requests");
    for (name, sum) in of_containers(spec, "requests") {
        let own = requests.key(name);
        let Ok(own_amount) = Quantity::parse(own.text()) else { continue };
        if sum.compare(&own_amount).is_gt() {
            let why = format!("must be greater than or equal to aggregate container requests of {sum}");
            errors.add(|| own.invalid_as(own_amount.to_string().as_str(), why));
        }
    }
    let limits = resources.get("limits");
    for (name, sum) in of_containers(spec, "limits").into_iter().filter(|(name, _)| is_huge_page(name)) {
        let own = limits.key(name);
        let Ok(own_amount) = Quantity::parse(own.text()) else { continue };
        if sum.compare(&own_amount).is_gt() {
            let why = format!("must be greater than or equal to aggregate container limits of {sum}");
            errors.add(|| own.invalid_as(own_amount.to_string().as_str(), why));
        }
    }
    for (at, container) in spec.get("containers").items().enumerate() {
        for (name, limit) in container.get("resources").get("limits").entries() {
            let (Ok(own), Ok(whole)) =
                (Quantity::parse(limit.text()), Quantity::parse(limits.key(name).text()))
            else {
                continue;
            };
            if limits.value().get(name).is_some() && own.compare(&whole).is_gt() {
                let place = resources.get("containers").index(at).key(name).get("limits");
                let why = format!("must be less than or equal to pod limits of {whole}");
                errors.add(|| place.invalid_as(own.to_string().as_str(), why));
            }
        }
    }
}

type Amounts<'o> = BTreeMap<&'o str, Quantity<'o>>;

/// Returns the total requests or limits of a pod's containers: containers and sidecars run at once, other init containers one by one
/// beside the sidecars before them.
pub(super) fn of_containers<'o>(spec: &Field<'o>, side: &'static str) -> Amounts<'o> {
    let mut sum = Amounts::new();
    for container in spec.get("containers").items() {
        add(&mut sum, &amounts(&container, side));
    }
    let (mut sidecars, mut most) = (Amounts::new(), Amounts::new());
    for container in spec.get("initContainers").items() {
        let mut own = amounts(&container, side);
        if container.get("restartPolicy").text() == "Always" {
            add(&mut sum, &own);
            add(&mut sidecars, &own);
            own.clone_from(&sidecars);
        } else {
            add(&mut own, &sidecars);
        }
        keep_greater(&mut most, own);
    }
    keep_greater(&mut sum, most);
    sum
}

fn amounts<'o>(container: &Field<'o>, side: &'static str) -> Amounts<'o> {
    let amounts = container.get("resources").get(side).map();
    let amounts = amounts.into_iter().flatten();
    amounts
        .filter_map(|(name, amount)| Some((name.as_str(), Quantity::parse(amount.as_str()?).ok()?)))
        .collect()
}

fn add<'o>(sum: &mut Amounts<'o>, more: &Amounts<'o>) {
    for (name, amount) in more {
        let whole = match sum.get(name) {
            Some(before) => before.plus(amount).unwrap_or_else(|_| amount.clone()),
            None => amount.clone(),
        };
        sum.insert(name, whole);
    }
}

fn keep_greater<'o>(most: &mut Amounts<'o>, other: Amounts<'o>) {
    for (name, amount) in other {
        if most.get(name).is_none_or(|before| amount.compare(before).is_gt()) {
            most.insert(name, amount);
        }
    }
}
