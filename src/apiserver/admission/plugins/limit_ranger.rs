//! Implements `LimitRanger`: a namespace's LimitRanges set default requests and limits of containers, and bound those of
//! containers, pods and claims.

use std::collections::BTreeMap;
use std::sync::Arc;

use admit_apimachinery::field_error::together;
use admit_apimachinery::quantity::Quantity;
use serde_json::Value;

use super::alone::Alone;
use super::pods::{items, text};
use super::resources::{Amounts, amounts, comparable, of_pod};
use super::{Plugin, Request};
use crate::admission::review::Operation;
use crate::object;
use crate::status::Refusal;

pub(super) const PLUGIN: Plugin =
    Plugin { name: "LimitRanger", mutate: Some(admit), validate: Some(validate), alone: Alone::Acts };

/// The pod annotation that lists the requests and limits set by this plugin.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";
const CLAIMS: &str = "persistentvolumeclaims";

fn limit_ranges(request: &Request<'_>) -> Result<Vec<Arc<Value>>, Refusal> {
    request.all("limitranges", Some(request.namespace()))
}

fn concerns(request: &Request<'_>) -> bool {
    request.creates("", "pods")
        || request.creates("", CLAIMS)
        || request.updates("", CLAIMS)
        // Other updates cannot change the resources of containers.
        || request.is(Operation::Update, ("", "pods", "resize"))
}

fn admit(request: &mut Request<'_>) -> Result<(), Refusal> {
    if !concerns(request) || request.review.call.info.plural != "pods" {
        return Ok(());
    }
    for range in limit_ranges(request)? {
        let defaults = Defaults::of(&range);
        if !defaults.limits.is_empty() || !defaults.requests.is_empty() {
            defaults.fill(request);
        }
    }
    Ok(())
}

/// The default requests and limits for containers that set none.
#[derive(Default)]
struct Defaults<'r> {
    requests: BTreeMap<&'r str, &'r Value>,
    limits: BTreeMap<&'r str, &'r Value>,
}

impl<'r> Defaults<'r> {
    fn of(range: &'r Value) -> Self {
        let mut defaults = Self::default();
        for limit in items(range, "/spec/limits").filter(|limit| text(limit, "/type") == "Container") {
            let map = |field: &str| {
                let map = limit.get(field).and_then(Value::as_object).into_iter().flatten();
                map.map(|(name, amount)| (name.as_str(), amount))
            };
            defaults.requests.extend(map("defaultRequest"));
            defaults.limits.extend(map("default"));
        }
        defaults
    }

    fn fill(&self, request: &mut Request<'_>) {
        let mut told = Vec::new();
        let pod = request.object();
        let lists = [("containers", "container"), ("initContainers", "init container")];
        for (list, called) in lists {
            for container in items(pod, &format!("/spec/{list}")) {
                let name = text(container, "/name");
                for (side, defaults, word) in self.sides() {
                    let missing: Vec<&str> = missing(container, side, defaults).collect();
                    if !missing.is_empty() {
                        told.push(format!("{} {word} for {called} {name}", missing.join(", ")));
                    }
                }
            }
        }
        if told.is_empty() {
            return;
        }
        let pod = request.object_mut();
        for (list, _) in lists {
            let list = pod.pointer_mut(&format!("/spec/{list}")).and_then(Value::as_array_mut);
            for container in list.into_iter().flatten() {
                for (side, defaults, _) in self.sides() {
                    let missing: Vec<&str> = missing(container, side, defaults).collect();
                    if missing.is_empty() {
                        continue;
                    }
                    let own = object::member_mut(object::map_of(container), "resources");
                    let own = object::member_mut(own, side);
                    for name in missing {
                        own.insert(
                            name.to_owned(),
                            defaults.get(name).map_or(Value::Null, |it| (*it).clone()),
                        );
                    }
                }
            }
        }
        let told = format!("LimitRanger plugin set: {}", told.join("; "));
        object::member_mut(object::meta_mut(pod), "annotations").insert(ANNOTATION.to_owned(), told.into());
    }

    fn sides(&self) -> [(&'static str, &BTreeMap<&'r str, &'r Value>, &'static str); 2] {
        [("requests", &self.requests, "request"), ("limits", &self.limits, "limit")]
    }
}

fn missing<'d>(
    container: &Value,
    side: &str,
    defaults: &'d BTreeMap<&str, &Value>,
) -> impl Iterator<Item = &'d str> {
    let own = container.pointer(&format!("/resources/{side}"));
    defaults.keys().copied().filter(move |name| own.is_none_or(|own| own.get(*name).is_none()))
}

fn validate(request: &Request<'_>) -> Result<(), Refusal> {
    if !concerns(request) {
        return Ok(());
    }
    for range in limit_ranges(request)? {
        let mut found: Vec<String> = Vec::new();
        for limit in items(&range, "/spec/limits") {
            let wrong = match (text(limit, "/type"), request.review.call.info.plural.as_str()) {
                (kind @ "Container", "pods") => of_containers(kind, limit, request.object()),
                (kind @ "Pod", "pods") => {
                    let pod = request.object();
                    bounded(kind, limit, &of_pod(pod, "requests"), &of_pod(pod, "limits"))
                }
                (kind @ "PersistentVolumeClaim", CLAIMS) => of_claim(kind, limit, request.object()),
                _ => Vec::new(),
            };
            found.extend(wrong);
        }
        // An error of several containers is reported once.
        let told = together(found.into_iter());
        if !told.is_empty() {
            return Err(request.forbidden(&told));
        }
    }
    Ok(())
}

fn of_containers(kind: &str, limit: &Value, pod: &Value) -> Vec<String> {
    let lists = ["/spec/containers", "/spec/initContainers"];
    let containers = lists.into_iter().flat_map(|list| items(pod, list));
    let each = containers.flat_map(|container| {
        let (requests, limits) =
            (amounts(container, "/resources/requests"), amounts(container, "/resources/limits"));
        bounded(kind, limit, &requests, &limits)
    });
    each.collect()
}

fn of_claim(kind: &str, limit: &Value, claim: &Value) -> Vec<String> {
    let requests = amounts(claim, "/spec/resources/requests");
    let least = each(limit, "min").filter_map(|bound| bound.least(kind, &requests, &Amounts::new()));
    let most = each(limit, "max").filter_map(|bound| bound.most_requested(kind, &requests));
    least.chain(most).collect()
}

fn bounded(kind: &str, limit: &Value, requests: &Amounts<'_>, limits: &Amounts<'_>) -> Vec<String> {
    let least = each(limit, "min").filter_map(|bound| bound.least(kind, requests, limits));
    let most = each(limit, "max").filter_map(|bound| bound.most(kind, requests, limits));
    let ratio = each(limit, "maxLimitRequestRatio").filter_map(|bound| bound.ratio(kind, requests, limits));
    least.chain(most).chain(ratio).collect()
}

/// The bounds that a LimitRange sets for one resource.
struct Bound<'r> {
    resource: &'r str,
    amount: Quantity<'r>,
}

fn each<'r>(limit: &'r Value, field: &str) -> impl Iterator<Item = Bound<'r>> {
    amounts(limit, &format!("/{field}")).into_iter().map(|(resource, amount)| Bound { resource, amount })
}

impl Bound<'_> {
    fn least(&self, kind: &str, requests: &Amounts<'_>, limits: &Amounts<'_>) -> Option<String> {
        let Self { resource, amount } = self;
        let begin = format!("minimum {resource} usage per {kind} is {amount}");
        let (request, limit) = (requests.get(resource), limits.get(resource));
        let Some(asked) = request else { return Some(format!("{begin}.  No request is specified")) };
        let [request, limited, least] = comparable([request, limit, Some(amount)]);
        match limit {
            _ if request < least => Some(format!("{begin}, but request is {asked}")),
            Some(limit) if limited < least => Some(format!("{begin}, but limit is {limit}")),
            _ => None,
        }
    }

    fn most(&self, kind: &str, requests: &Amounts<'_>, limits: &Amounts<'_>) -> Option<String> {
        let Self { resource, amount } = self;
        let begin = format!("maximum {resource} usage per {kind} is {amount}");
        let (request, limit) = (requests.get(resource), limits.get(resource));
        let Some(told) = limit else { return Some(format!("{begin}.  No limit is specified")) };
        let [requested, limited, most] = comparable([request, limit, Some(amount)]);
        match request {
            _ if limited > most => Some(format!("{begin}, but limit is {told}")),
            Some(request) if requested > most => Some(format!("{begin}, but request is {request}")),
            _ => None,
        }
    }

    fn most_requested(&self, kind: &str, requests: &Amounts<'_>) -> Option<String> {
        let Self { resource, amount } = self;
        let begin = format!("maximum {resource} usage per {kind} is {amount}");
        let request = requests.get(resource);
        let Some(asked) = request else { return Some(format!("{begin}.  No request is specified")) };
        let [requested, most] = comparable([request, Some(amount)]);
        (requested > most).then(|| format!("{begin}, but request is {asked}"))
    }

    fn ratio(&self, kind: &str, requests: &Amounts<'_>, limits: &Amounts<'_>) -> Option<String> {
        let Self { resource, amount } = self;
        let begin = format!("{resource} max limit to request ratio per {kind} is {amount}");
        let [requested, limited, _] =
            comparable([requests.get(resource), limits.get(resource), Some(amount)]);
        if requested == 0 {
            return Some(format!("{begin}, but no request is specified or request is 0"));
        }
        if limited == 0 {
            return Some(format!("{begin}, but no limit is specified or limit is 0"));
        }
        let ratio = limited as f64 / requested as f64;
        let is_over = match amount.scaled_value(3) {
            i64::MAX => ratio > amount.scaled_value(0) as f64,
            thousandths => ratio * 1000.0 > thousandths as f64,
        };
        is_over.then(|| format!("{begin}, but provided ratio is {ratio:.6}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::plugins::tests::{Placed, mutated_beside, pod, refused_beside};

    fn range(limits: &Value) -> Placed {
        ("limitranges", json!({"metadata": {"name": "l", "namespace": "n"}, "spec": {"limits": limits}}))
    }

    #[test]
    fn containers_get_what_they_do_not_ask_for() {
        let limits = json!([{"type": "Container", "default": {"cpu": "500m", "memory": "1Gi"},
            "defaultRequest": {"cpu": "100m"}}]);
        let mut sent = pod();
        sent["spec"]["containers"][0]["resources"] = json!({"limits": {"memory": "2Gi"}});
        sent["spec"]["initContainers"] = json!([{"name": "i"}]);
        let made = mutated_beside(&PLUGIN, "pods", &sent, &[range(&limits)]).unwrap().unwrap();
        assert_eq!(
            made["metadata"]["annotations"][ANNOTATION],
            "LimitRanger plugin set: cpu request for container c; cpu limit for container c; cpu request for init \
             container i; cpu, memory limit for init container i"
        );
        let own = json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "500m", "memory": "2Gi"}});
        assert_eq!(made["spec"]["containers"][0]["resources"], own);
    }

    #[test]
    fn containers_stay_within_their_limits() {
        let told = |limits: Value, resources: Value| {
            let mut sent = pod();
            sent["spec"]["containers"][0]["resources"] = resources;
            let whole = refused_beside(&PLUGIN, "pods", &sent, &[range(&limits)]);
            whole.trim_start_matches("pods \"a\" is forbidden: ").to_owned()
        };
        let one = |rest: Value| {
            let mut limit = json!({"type": "Container"});
            object::map_of(&mut limit).extend(rest.as_object().cloned().unwrap());
            json!([limit])
        };
        assert_eq!(
            told(one(json!({"max": {"cpu": "1"}})), json!({"limits": {"cpu": "2"}})),
            "maximum cpu usage per Container is 1, but limit is 2"
        );
        assert_eq!(
            told(one(json!({"max": {"cpu": "1"}, "min": {"memory": "1Gi"}})), json!({})),
            "[minimum memory usage per Container is 1Gi.  No request is specified, maximum cpu usage per Container is \
             1.  No limit is specified]"
        );
        assert_eq!(
            told(one(json!({"min": {"cpu": "100m"}})), json!({"requests": {"cpu": "50m"}})),
            "minimum cpu usage per Container is 100m, but request is 50m"
        );
        let both = json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "350m"}});
        assert_eq!(
            told(one(json!({"maxLimitRequestRatio": {"cpu": "3"}})), both.clone()),
            "cpu max limit to request ratio per Container is 3, but provided ratio is 3.500000"
        );
        assert_eq!(
            told(json!([{"type": "Pod", "max": {"cpu": "300m"}}]), both),
            "maximum cpu usage per Pod is 300m, but limit is 350m"
        );
    }

    #[test]
    fn claims_stay_within_their_limits() {
        let limits = json!([{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]);
        let claim =
            json!({"metadata": {"name": "a"}, "spec": {"resources": {"requests": {"storage": "2Gi"}}}});
        assert_eq!(
            refused_beside(&PLUGIN, "persistentvolumeclaims", &claim, &[range(&limits)]),
            "persistentvolumeclaims \"a\" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but \
             request is 2Gi"
        );
    }
}
