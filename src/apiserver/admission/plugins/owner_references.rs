//! Implements `OwnerReferencesPermissionEnforcement`: to change an object's owners, a user must be allowed to delete the object; to
//! set `blockOwnerDeletion`, to update finalizers of the owner. Off by default; on in OpenShift.

use admit_policy::{Access, AccessAttributes};
use serde_json::Value;

use super::alone::Alone;
use super::pods::{items, text};
use super::{Plugin, Request};
use crate::admission::review::Operation;
use crate::resources::Scope;
use crate::status::Refusal;

pub(super) const PLUGIN: Plugin = Plugin {
    name: "OwnerReferencesPermissionEnforcement",
    mutate: None,
    validate: Some(validate),
    alone: Alone::Never,
};

const OWNERS: &str = "/metadata/ownerReferences";

fn validate(request: &Request<'_>) -> Result<(), Refusal> {
    let review = request.review;
    // Kubelets send invalid owner references with the status of pods, which does not change metadata.
    let is_status_of_pod = request.is(Operation::Update, ("", "pods", "status"));
    if !matches!(review.operation, Operation::Create | Operation::Update)
        || is_status_of_pod
        || !changes(request)
    {
        return Ok(());
    }
    let info = &review.call.info;
    let own = may(
        request,
        Wanted {
            verb: "delete",
            api: [&info.group, &info.version, &info.plural],
            subresource: review.subresource(),
            namespace: request.namespace(),
            name: review.name,
        },
    );
    if !own.allowed {
        return Err(request.forbidden(&format!(
            "cannot set an ownerRef on a resource you can't delete: {}, <nil>",
            own.reason
        )));
    }
    for owner in newly_blocking(request) {
        let (api_version, kind) = (text(owner, "/apiVersion"), text(owner, "/kind"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let served = request.cluster.resources();
        let Some(of_owner) = served.find_kind(group, version, kind) else {
            return Err(request.forbidden(&format!(
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {api_version} \
                 Kind {kind}: {}, no matches for kind \"{kind}\" in version \"{api_version}\"",
                own.reason
            )));
        };
        let wanted = Wanted {
            verb: "update",
            api: [&of_owner.group, &of_owner.version, &of_owner.plural],
            subresource: "finalizers",
            // A namespaced owner is in the namespace of what it owns.
            namespace: if of_owner.scope == Scope::Namespaced { request.namespace() } else { "" },
            name: text(owner, "/name"),
        };
        let access = may(request, wanted);
        if !access.allowed {
            return Err(request.forbidden(&format!(
                "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: {}, <nil>",
                access.reason
            )));
        }
    }
    Ok(())
}

/// Returns whether the write changes the owners of the object.
fn changes(request: &Request<'_>) -> bool {
    items(request.object(), OWNERS).ne(items(request.old(), OWNERS))
}

/// Returns the owners whose deletion the object newly blocks.
fn newly_blocking<'r>(request: &'r Request<'_>) -> impl Iterator<Item = &'r Value> {
    let blocks = |owner: &&Value| owner.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true);
    items(request.object(), OWNERS).filter(blocks).filter(move |owner| {
        let is_it = |known: &&Value| text(known, "/uid") == text(owner, "/uid");
        !items(request.old(), OWNERS).filter(blocks).any(|known| is_it(&known))
    })
}

/// An action that a user needs permission for.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    verb: &'a str,
    /// Group, version and plural.
    api: [&'a str; 3],
    subresource: &'a str,
    namespace: &'a str,
    name: &'a str,
}

fn may(request: &Request<'_>, wanted: Wanted<'_>) -> Access {
    let [group, version, resource] = wanted.api.map(str::to_owned);
    let attributes = AccessAttributes::Resource {
        verb: wanted.verb.to_owned(),
        group,
        version,
        resource,
        subresource: wanted.subresource.to_owned(),
        namespace: wanted.namespace.to_owned(),
        name: wanted.name.to_owned(),
        field_selector: String::new(),
        label_selector: String::new(),
    };
    request.cluster.access(&request.review.call.identity.to_user(), &attributes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::plugins::tests::{Asked, Placed, pod};
    use crate::identity::Identity;

    /// Returns a pod with an owner.
    fn owned(kind: &str, blocks: bool) -> Value {
        let mut pod = pod();
        pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": kind, "name": "r", "uid": "u",
            "blockOwnerDeletion": blocks}]);
        pod
    }

    /// Returns the refusal for a user who may do this.
    fn told(rules: &Value, new: &Value, old: Option<&Value>) -> Result<(), String> {
        let role: Placed =
            ("clusterroles", json!({"kind": "ClusterRole", "metadata": {"name": "r"}, "rules": rules}));
        let binding: Placed = (
            "clusterrolebindings",
            json!({"kind": "ClusterRoleBinding", "metadata": {"name": "b"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}]}),
        );
        let stored = [role, binding];
        let user = Identity { username: "ann".to_owned(), ..Identity::anonymous() };
        let asked = Asked { old, user, ..Asked::create("pods", new, &stored) };
        asked.of(&PLUGIN).map(drop).map_err(|refusal| refusal.message().to_owned())
    }

    #[test]
    fn owners_are_named_by_those_who_may_delete_and_finalize() {
        let nothing = json!([]);
        let delete = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]}]);
        let both = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]},
            {"apiGroups": ["apps"], "resources": ["replicasets/finalizers"], "verbs": ["update"]}]);
        let no_delete =
            "pods \"a\" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>";
        let no_finalizers = "pods \"a\" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a \
                             resource you can't set finalizers on: , <nil>";
        let (plain, free, blocking) = (pod(), owned("ReplicaSet", false), owned("ReplicaSet", true));
        for (rules, new, old, expected) in [
            (&nothing, &plain, None, Ok(())),
            (&nothing, &free, None, Err(no_delete)),
            (&nothing, &free, Some(&free), Ok(())),
            (&nothing, &plain, Some(&free), Err(no_delete)),
            (&delete, &free, None, Ok(())),
            (&delete, &blocking, None, Err(no_finalizers)),
            (&delete, &blocking, Some(&free), Err(no_finalizers)),
            (&delete, &free, Some(&blocking), Ok(())),
            (&both, &blocking, None, Ok(())),
        ] {
            let said = told(rules, new, old);
            assert_eq!(said, expected.map_err(str::to_owned), "{rules} {new}");
        }
        let unknown = told(&delete, &owned("Nothing", true), None).unwrap_err();
        assert!(
            unknown.contains("cannot find RESTMapping for APIVersion apps/v1 Kind Nothing: "),
            "{unknown}"
        );
        assert!(unknown.ends_with("no matches for kind \"Nothing\" in version \"apps/v1\""), "{unknown}");
    }
}
