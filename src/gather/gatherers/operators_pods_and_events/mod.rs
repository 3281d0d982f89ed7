//! Gathers data about unhealthy operators: in the namespaces that they relate to, the unhealthy Pods, the ends of their
//! logs, and the events since the last gathering.

mod events;
mod logs;
mod trace;

use std::collections::BTreeSet;

use admit_apimachinery::pointer::text;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use serde_json::Value;

use self::logs::Logged;
use super::super::anonymize;
use super::super::failure::Failure;
use super::super::gatherer::{Context, Gatherer, Look, Run, Shared};
use super::super::lister;
use super::pods::{self, items};
use super::{PODS, name, tell, told};

pub(super) const ROW: Gatherer = Gatherer {
    id: "clusterconfig/operators_pods_and_events",
    collects: "unhealthy pods, ends of logs and recent events in the namespaces of ClusterOperators that are Degraded or not Available",
    path: "config/pod/{namespace}/{pod}.json, config/pod/{namespace}/logs/{pod}/{container}_{current,previous}.log, \
           events/{namespace}.json",
    run: Run::Each(Shared::ClusterOperators, |context| {
        async { Ok(Box::new(Ailing { context, namespaces: BTreeSet::new() }) as Box<dyn Look>) }.boxed()
    }),
};

/// The namespaces of the unhealthy operators so far.
struct Ailing {
    context: Context,
    namespaces: BTreeSet<String>,
}

impl Look for Ailing {
    fn at<'l>(&'l mut self, operator: &'l Value) -> BoxFuture<'l, Result<(), Failure>> {
        if ails(operator) {
            let related = items(operator, "/status/relatedObjects");
            let of_namespaces = related.filter(|related| text(related, "/resource") == "namespaces");
            self.namespaces.extend(of_namespaces.map(|related| text(related, "/name").to_owned()));
        }
        ready(Ok(())).boxed()
    }

    fn end(self: Box<Self>) -> BoxFuture<'static, Result<(), Failure>> {
        let Self { context, namespaces } = *self;
        async move { keep(&context, namespaces).await }.boxed()
    }
}

async fn keep(context: &Context, namespaces: BTreeSet<String>) -> Result<(), Failure> {
    let mut logged = Logged::default();
    for namespace in &readable(context, namespaces) {
        let events = events::keep(context, namespace).await;
        told(context, events)?;
        let pods = keep_pods(context, namespace, &mut logged).await;
        told(context, pods)?;
    }
    logs::keep(context, logged).await
}

/// Returns those namespaces that may be read.
fn readable(context: &Context, namespaces: BTreeSet<String>) -> Vec<String> {
    let (read, left): (Vec<_>, Vec<_>) = namespaces
        .into_iter()
        .filter(|name| !name.is_empty())
        .partition(|name| context.reads_namespace(name));
    if !left.is_empty() {
        let prefix = &context.namespace_prefix;
        let left = left.join(", ");
        context.recorder.warn(format!("not read, because their names do not begin with `{prefix}`: {left}"));
    }
    read
}

fn ails(operator: &Value) -> bool {
    items(operator, "/status/conditions").any(|condition| {
        matches!(
            (text(condition, "/type"), text(condition, "/status")),
            ("Degraded", "True") | ("Available", "False")
        )
    })
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
