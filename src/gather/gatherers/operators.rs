//! Gathers ClusterOperators: the status of each part of the platform, and the specs of the objects that configure it.

use std::collections::BTreeSet;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::super::anonymize;
use super::super::failure::Failure;
use super::super::gatherer::{Context, Gatherer, Look, Run, Shared};
use super::super::lister::{self, Reference, Resource};
use super::pods::items;
use super::{name, namespace, told};

pub(super) const ROW: Gatherer = Gatherer {
    id: "clusterconfig/operators",
    collects: "ClusterOperators, and the specs of related objects of the groups *operator.openshift.io",
    path: "config/clusteroperator/{name}.json, config/clusteroperator/{group}/{kind}/[{namespace}/]{name}.json",
    run: Run::Each(Shared::ClusterOperators, |context| {
        let begun = Relating { context, related: BTreeSet::new(), unread: 0 };
        async { Ok(Box::new(begun) as Box<dyn Look>) }.boxed()
    }),
};

pub(super) const RESOURCE: Resource = Resource {
    group: "config.openshift.io",
    version: "v1",
    kind: "ClusterOperator",
    plural: "clusteroperators",
};
pub(super) const CAP: usize = 1000;
/// The most related objects that are read. A platform has some dozens.
const MAX_RELATED: usize = 1000;
/// The part of a group's name that marks a related object as the configuration of an operator.
const GROUPS: &str = "operator.openshift.io";

/// The related objects found so far.
struct Relating {
    context: Context,
    related: BTreeSet<Reference>,
    unread: usize,
}

impl Look for Relating {
    fn at<'l>(&'l mut self, operator: &'l Value) -> BoxFuture<'l, Result<(), Failure>> {
        for reference in references(operator) {
            if self.related.len() < MAX_RELATED {
                self.related.insert(reference);
            } else if !self.related.contains(&reference) {
                self.unread += 1;
            }
        }
        let path = format!("config/clusteroperator/{}", name(operator));
        self.context.json(path, operator.clone()).boxed()
    }

    fn end(self: Box<Self>) -> BoxFuture<'static, Result<(), Failure>> {
        let Self { context, related, unread } = *self;
        if unread > 0 {
            context
                .recorder
                .warn(format!("{unread} related objects past the first {MAX_RELATED} were not read"));
        }
        async move { keep_related(&context, related).await }.boxed()
    }
}

/// Returns the related objects of an operator that configure an operator.
fn references(operator: &Value) -> impl Iterator<Item = Reference> {
    items(operator, "/status/relatedObjects").filter_map(|related| {
        let text = |field: &str| related.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut reference = Reference {
            group: text("group"),
            plural: text("resource"),
            namespace: Some(text("namespace")).filter(|namespace| !namespace.is_empty()),
            name: text("name"),
        };
        // The ingress operator refers to controllers without a name; one with this name always exists.
        if reference.name.is_empty() && reference.plural == "ingresscontrollers" {
            "default".clone_into(&mut reference.name);
        }
        let belongs = reference.group.contains(GROUPS) && !reference.name.is_empty();
        belongs.then_some(reference)
    })
}

async fn keep_related(context: &Context, related: BTreeSet<Reference>) -> Result<(), Failure> {
    if related.is_empty() {
        return Ok(());
    }
    let versions = lister::versions(context).await?;
    for reference in related {
        let Some(version) = versions.get(&reference.group) else {
            context.recorder.warn(format!("{reference} is not read: its group is not served"));
            continue;
        };
        let read = match lister::get_reference(context, &reference, version).await {
            Ok(Some(object)) => keep_one(context, &reference, &object).await,
            Ok(None) => {
                context.recorder.warn(format!("{reference} is not there"));
                Ok(())
            }
            Err(failure) => Err(failure),
        };
        told(context, read)?;
    }
    Ok(())
}

async fn keep_one(context: &Context, reference: &Reference, object: &Value) -> Result<(), Failure> {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or(&reference.plural);
    let mut kept = Map::new();
    for field in ["apiVersion", "kind", "spec"] {
        kept.insert(field.to_owned(), object.get(field).cloned().unwrap_or_default());
    }
    kept.insert("name".to_owned(), json!(name(object)));
    // The status has the results of the last gathering.
    if kind == "InsightsOperator" {
        kept.insert("status".to_owned(), object.get("status").cloned().unwrap_or_default());
    }
    let mut kept = Value::Object(kept);
    if let Some(providers) = kept.pointer_mut(IDENTITY_PROVIDERS) {
        hide_addresses(providers);
    }
    let folder = [reference.group.as_str(), &kind.to_lowercase(), namespace(object)];
    let folder: Vec<_> = folder.into_iter().filter(|part| !part.is_empty()).collect();
    context.json(format!("config/clusteroperator/{}/{}", folder.join("/"), name(object)), kept).await
}

const IDENTITY_PROVIDERS: &str = "/spec/observedConfig/oauthServer/oauthConfig/identityProviders";
/// The fields with addresses of identity providers, and the credentials for them.
const ADDRESSES: &[&str] =
    &["url", "bindDN", "hostname", "clientID", "hostedDomain", "issuer", "domainName", "bindPassword"];

fn hide_addresses(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                match value {
                    Value::String(text) if ADDRESSES.contains(&field.as_str()) => {
                        *text = anonymize::string(text)
                    }
                    _ => hide_addresses(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hide_addresses),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn related_objects_are_those_of_operators_by_name() {
        let of = |group: &str, resource: &str, name: &str| json!({"group": group, "resource": resource, "name": name});
        let operator = json!({"status": {"relatedObjects": [
            of("", "namespaces", "openshift-dns"),
            of("operator.openshift.io", "dnses", "default"),
            of("operator.openshift.io", "ingresscontrollers", ""),
            of("operator.openshift.io", "kubeapiservers", ""),
            of("imageregistry.operator.openshift.io", "configs", "cluster"),
            of("config.openshift.io", "oauths", "cluster"),
        ]}});
        let found: Vec<_> = references(&operator).map(|reference| reference.to_string()).collect();
        assert_eq!(
            found,
            [
                "dnses.operator.openshift.io default",
                "ingresscontrollers.operator.openshift.io default",
                "configs.imageregistry.operator.openshift.io cluster",
            ]
        );
    }

    #[test]
    fn addresses_of_identity_providers_are_hidden() {
        let mut providers =
            json!([{"name": "corp", "provider": {"kind": "X", "url": "ldap://h", "bindDN": "cn=a"}}]);
        hide_addresses(&mut providers);
        assert_eq!(
            providers,
            json!([{"name": "corp", "provider": {"kind": "X", "url": "xxxxxxxx", "bindDN": "xxxx"}}])
        );
    }
}
