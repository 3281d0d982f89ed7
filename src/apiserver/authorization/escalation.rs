//! Prevents privilege escalation: refuses a write of a role or binding by a user who lacks some of the permissions
//! that it grants, unless a role allows the user to `escalate`, or to `bind` the role.

use std::sync::Arc;

use admit_apimachinery::go::quote::{quote, quote_all};
use admit_apimachinery::names::path_segment;
use admit_apimachinery::pointer;
use admit_policy::AccessAttributes;
use admit_policy::rbac::{Missing, Rule, missing};
use serde_json::Value;

use super::{Authorization, resource_access};
use crate::call::Call;
use crate::object;
use crate::objects::Objects;
use crate::status::Refusal;

const GROUP: &str = "rbac.authorization.k8s.io";

impl Authorization {
    /// # Errors
    /// 403 that names the missing permissions; 404 for a binding to a role that does not exist.
    pub(crate) fn refuse_escalation(
        &self,
        objects: &dyn Objects,
        call: &Call,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), Refusal> {
        let concerned = call.info.builtin && call.info.group == GROUP;
        if !concerned
            || call.identity.is_admin()
            || old.is_some_and(|old| collected(old) == collected(object))
        {
            return Ok(());
        }
        let refused =
            |why: &str| Refusal::resource_forbidden(GROUP, &call.info.plural, object::name(object), why);
        let wanted: Arc<[Rule]> = match call.info.kind.as_str() {
            "Role" | "ClusterRole" => {
                if self.may(objects, call, "escalate", &call.info.plural, object::name(object)) {
                    return Ok(());
                }
                if object.get("aggregationRule").is_some_and(|rule| !rule.is_null()) {
                    if self.lacking(objects, call, &everything()).is_nothing() {
                        return Ok(());
                    }
                    return Err(refused("must have cluster-admin privileges to use the aggregationRule"));
                }
                object.get("rules").and_then(Value::as_array).into_iter().flatten().map(Rule::read).collect()
            }
            _ => {
                let text = |pointer: &str| pointer::text(object, pointer);
                let (kind, name) = (text("/roleRef/kind"), text("/roleRef/name"));
                let plural = match kind {
                    "Role" => "roles",
                    "ClusterRole" => "clusterroles",
                    other => {
                        let why = format!("unsupported role reference kind: {}", quote(other));
                        return Err(Refusal::unclassified(why));
                    }
                };
                if self.may(objects, call, "bind", plural, name) {
                    return Ok(());
                }
                if kind == "Role" && call.namespace.is_empty() {
                    return Err(Refusal::bad_request("Namespace parameter required."));
                }
                check_role_name(name)?;
                let role = self.rules(objects).role(object);
                // Upstream's message names the requested resource, not the role's.
                role.map_err(|_| Refusal::not_listed(GROUP, &call.info.plural, name))?
            }
        };
        let lacking = self.lacking(objects, call, &wanted);
        if lacking.is_nothing() {
            return Ok(());
        }
        let user = &call.identity;
        Err(refused(&format!(
            "user {} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
            quote(&user.username),
            quote_all(&user.groups, " "),
            lacking.lines().join("\n")
        )))
    }

    fn may(&self, objects: &dyn Objects, call: &Call, verb: &str, plural: &str, name: &str) -> bool {
        let mut asked = resource_access(verb, GROUP, plural, name);
        if let AccessAttributes::Resource { namespace, .. } = &mut asked {
            namespace.clone_from(&call.namespace);
        }
        self.access(objects, &call.identity.to_user(), &asked).allowed
    }

    /// Returns the rules of `wanted` that the caller does not have.
    fn lacking(&self, objects: &dyn Objects, call: &Call, wanted: &[Rule]) -> Missing {
        let held = self.rules(objects).granted(&call.identity.to_user(), &call.namespace);
        missing(&held.rules, wanted)
    }
}

/// Checks that a role can have the name, as for a request to the role's path.
fn check_role_name(name: &str) -> Result<(), Refusal> {
    if name.is_empty() {
        return Err(Refusal::bad_request("Name parameter required."));
    }
    match path_segment(name, false).as_slice() {
        [] => Ok(()),
        [problem, ..] => {
            Err(Refusal::bad_request(format!("Name parameter invalid: {}: {problem}", quote(name))))
        }
    }
}

fn everything() -> [Rule; 2] {
    let all = || vec!["*".to_owned()];
    [
        Rule { verbs: all(), api_groups: all(), resources: all(), ..Rule::default() },
        Rule { verbs: all(), non_resource_urls: all(), ..Rule::default() },
    ]
}

/// Returns the object without the fields that the garbage collector changes.
fn collected(object: &Value) -> Value {
    let mut rest = object.clone();
    for field in ["ownerReferences", "finalizers", "managedFields"] {
        object::set_meta(&mut rest, field, None);
    }
    rest
}
