//! What goes on around operators that are not well: in the namespaces that they relate to the pods that are not healthy, the ends of
//! logs, and the events since the last gathering.

mod events;
mod logs;
mod trace;

use std::collections::BTreeSet;

use futures::FutureExt;
use serde_json::Value;

use self::logs::Logged;
use super::super::anonymize;
use super::super::gatherer::{Context, Failure, Gatherer};
use super::super::lister::{self, Resource};
use super::pods::{self, items};
use super::{name, operators, tell, told};

pub(super) const ROW: Gatherer = Gatherer {
    id: "clusterconfig/operators_pods_and_events",
    collects: "unhealthy pods, ends of logs and recent events in the namespaces of ClusterOperators that are Degraded or not Available",
    path: "config/pod/{namespace}/{pod}.json, config/pod/{namespace}/logs/{pod}/{container}_{current,previous}.log, \
           events/{namespace}.json",
    run: |context| gather(context).boxed(),
};

const PODS: Resource = Resource { group: "", version: "v1", kind: "Pod", plural: "pods" };

async fn gather(context: Context) -> Result<(), Failure> {
    let namespaces = namespaces(&context).await?;
    let mut logged = Logged::default();
    for namespace in &namespaces {
        let events = events::keep(&context, namespace).await;
        told(&context, events)?;
        let pods = keep_pods(&context, namespace, &mut logged).await;
        told(&context, pods)?;
    }
    logs::keep(&context, logged).await
}

/// The readable namespaces of operators that are not well.
async fn namespaces(context: &Context) -> Result<Vec<String>, Failure> {
    let mut listing = lister::list(context, operators::RESOURCE).capped(operators::CAP);
    let mut namespaces = BTreeSet::new();
    while let Some(operator) = listing.next().await? {
        if ails(&operator) {
            let related = items(&operator, "/status/relatedObjects");
            let of_namespaces = related.filter(|related| text(related, "resource") == "namespaces");
            namespaces.extend(of_namespaces.map(|related| text(related, "name").to_owned()));
        }
    }
    tell(context, &listing);
    let (read, left): (Vec<_>, Vec<_>) = namespaces
        .into_iter()
        .filter(|name| !name.is_empty())
        .partition(|name| context.reads_namespace(name));
    if !left.is_empty() {
        let prefix = &context.namespace_prefix;
        let left = left.join(", ");
        context.keeper.warn(format!("not read, because their names do not begin with `{prefix}`: {left}"));
    }
    Ok(read)
}

fn ails(operator: &Value) -> bool {
    items(operator, "/status/conditions").any(|condition| {
        matches!(
            (text(condition, "type"), text(condition, "status")),
            ("Degraded", "True") | ("Available", "False")
        )
    })
}

fn text<'v>(object: &'v Value, field: &str) -> &'v str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

async fn keep_pods(context: &Context, namespace: &str, logged: &mut Logged) -> Result<(), Failure> {
    let mut listing = lister::list_in(context, namespace, PODS);
    while let Some(mut pod) = listing.next().await? {
        let healthy = pods::is_healthy(&pod, context.now);
        logged.add(&pod, !healthy && pods::was_restarted(&pod));
        if !healthy {
            anonymize::proxy_variables(&mut pod);
            context.json(format!("config/pod/{namespace}/{}", name(&pod)), pod).await?;
        }
    }
    tell(context, &listing);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_operator_ails_when_it_is_degraded_or_not_available() {
        let with = |type_: &str, status: &str| {
            ails(&json!({"status": {"conditions": [{"type": type_, "status": status}]}}))
        };
        assert!(with("Degraded", "True") && with("Available", "False"));
        assert!(!with("Degraded", "False") && !with("Available", "True") && !with("Available", "Unknown"));
        assert!(!ails(&json!({})));
    }
}
