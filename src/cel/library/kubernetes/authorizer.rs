//! Implements authorization checks: `authorizer.group('apps').resource('deployments').check('create').allowed()`.

use admit_apimachinery::names;

use crate::cost::{Bounds, CallEstimate, Operand, STRING_TRAVERSAL};
use crate::library::{Context, Overload, Version, cost, mismatch};
use crate::value::authorization::{Asker, Authorization, Check, Decision, ResourceTarget, Subject, Target};
use crate::value::{EvalError, Opaque, Value};
use Value::{Bool, String};

const SINCE: Version = Version(1, 27);
const SELECTORS: Version = Version(1, 31);

/// The row of a step that names a part of a resource.
macro_rules! part {
    ($id:literal, $function:literal, $field:ident, $doc:literal) => {
        Overload::new(
            $id,
            concat!(
                "kubernetes.authorization.ResourceCheck.",
                $function,
                "(string) -> kubernetes.authorization.ResourceCheck"
            ),
            |context, args| match args {
                [
                    Value::Opaque(Opaque::Authorization(Authorization::Resource(asker, target))),
                    String(text),
                ] => {
                    let target = ResourceTarget { $field: *text, ..*target };
                    keep(context, Authorization::Resource(*asker, target))
                }
                _ => mismatch(),
            },
            $doc,
        )
    };
}

/// The row of a part of a decision.
macro_rules! outcome {
    ($id:literal, $function:literal, $result:literal, $body:expr, $doc:literal) => {
        Overload::new(
            $id,
            concat!("kubernetes.authorization.Decision.", $function, "() -> ", $result),
            |_, args| match args {
                [
                    Value::Opaque(Opaque::Authorization(Authorization::Decision { allowed, reason, error })),
                ] => Ok($body(*allowed, *reason, *error)),
                _ => mismatch(),
            },
            $doc,
        )
        .since(SINCE)
    };
}

pub(super) const ROWS: &[Overload] = &[
    Overload::new("authorizer_path", "kubernetes.authorization.Authorizer.path(string) -> kubernetes.authorization.PathCheck", path, "A check of a path outside the resources.").since(SINCE),
    Overload::new("authorizer_group", "kubernetes.authorization.Authorizer.group(string) -> kubernetes.authorization.GroupCheck", |context, args| match args {
        [Value::Opaque(Opaque::Authorization(Authorization::Authorizer(asker))), String(group)] => {
            keep(context, Authorization::Group(*asker, group))
        }
        _ => mismatch(),
    }, "A check of a resource of an API group.").since(SINCE),
    Overload::new("authorizer_serviceaccount", "kubernetes.authorization.Authorizer.serviceAccount(string, string) -> kubernetes.authorization.Authorizer", service_account, "Checks for a service account, by namespace and name.").since(SINCE),
    Overload::new("groupcheck_resource", "kubernetes.authorization.GroupCheck.resource(string) -> kubernetes.authorization.ResourceCheck", resource, "A check of a resource of the group.").since(SINCE),
    part!("resourcecheck_subresource", "subresource", subresource, "A check of a subresource.").since(SINCE),
    part!("resourcecheck_namespace", "namespace", namespace, "A check in a namespace.").since(SINCE),
    part!("resourcecheck_name", "name", name, "A check of one object.").since(SINCE),
    Overload::new("pathcheck_check", "kubernetes.authorization.PathCheck.check(string) -> kubernetes.authorization.Decision", check, "The decision about a verb.")
        .costs_by_name(|_| CallEstimate::of_cost(Bounds::exactly(CHECK)), |_, _| CHECK)
        .since(SINCE),
    Overload::new("resourcecheck_check", "kubernetes.authorization.ResourceCheck.check(string) -> kubernetes.authorization.Decision", check, "The decision about a verb.")
        .costs_by_name(|_| CallEstimate::of_cost(Bounds::exactly(CHECK)), |_, _| CHECK)
        .since(SINCE),
    outcome!("decision_errored", "errored", "bool", |_, _, error: Option<&str>| Bool(error.is_some()), "Whether the check could not be made."),
    outcome!("decision_error", "error", "string", |_, _, error: Option<_>| String(error.unwrap_or_default()), "Why the check could not be made; empty if it could."),
    outcome!("decision_allowed", "allowed", "bool", |allowed, _, _| Bool(allowed), "Whether the subject may."),
    outcome!("decision_reason", "reason", "string", |_, reason, _| String(reason), "Why the subject may or may not."),
    part!("authorizer_fieldselector", "fieldSelector", field_selector, "A check of objects that a field selector selects.")
        .costs_by_name(estimate_selector, charge_selector)
        .since(SELECTORS),
    part!("authorizer_labelselector", "labelSelector", label_selector, "A check of objects that a label selector selects.")
        .costs_by_name(estimate_selector, charge_selector)
        .since(SELECTORS),
];

/// Leaves room for two checks in an expression.
const CHECK: u64 = 350_000;

fn keep<'a>(context: &Context<'a>, value: Authorization<'a>) -> Result<Value<'a>, EvalError> {
    context.keep(value).map(|value| Value::Opaque(Opaque::Authorization(value)))
}

fn path<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Value::Opaque(Opaque::Authorization(Authorization::Authorizer(asker))), String(path)] = args else {
        return mismatch();
    };
    if path.trim().is_empty() {
        return Err(EvalError::other("path must not be empty"));
    }
    keep(context, Authorization::Path(*asker, path))
}

fn resource<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Value::Opaque(Opaque::Authorization(Authorization::Group(asker, group))), String(resource)] = args
    else {
        return mismatch();
    };
    if resource.trim().is_empty() {
        return Err(EvalError::other("resource must not be empty"));
    }
    let target = ResourceTarget { group, resource, ..ResourceTarget::default() };
    keep(context, Authorization::Resource(*asker, target))
}

fn service_account<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [
        Value::Opaque(Opaque::Authorization(Authorization::Authorizer(asker))),
        String(namespace),
        String(name),
    ] = args
    else {
        return mismatch();
    };
    if !names::dns1123_subdomain(name).is_empty() {
        return Err(EvalError::other("Invalid service account name"));
    }
    if !names::dns1123_label(namespace).is_empty() {
        return Err(EvalError::other("Invalid service account namespace"));
    }
    let subject = Subject::ServiceAccount { namespace, name };
    keep(context, Authorization::Authorizer(Asker { host: asker.host, subject }))
}

fn check<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Value::Opaque(Opaque::Authorization(checked)), String(verb)] = args else { return mismatch() };
    let (asker, target) = match checked {
        Authorization::Path(asker, path) => (asker, Target::Path(path)),
        Authorization::Resource(asker, resource) => (asker, Target::Resource(*resource)),
        Authorization::Authorizer(_) | Authorization::Group(..) | Authorization::Decision { .. } => {
            return mismatch();
        }
    };
    let Decision { allowed, reason, error } =
        asker.host.authorize(&Check { subject: asker.subject, verb, target });
    let reason = context.str(&reason)?;
    let error = error.map(|error| context.str(&error)).transpose()?;
    keep(context, Authorization::Decision { allowed, reason, error })
}

/// Reading a selector, and a requirement for every second character at worst.
fn selector_cost(length: Bounds) -> Bounds {
    let per_requirement = (cost::LIST.saturating_add(cost::STRUCT)) as f64;
    let requirements = length.scaled(0.5).scaled(per_requirement);
    Bounds::exactly(cost::LIST).plus(length.scaled(STRING_TRAVERSAL)).plus(requirements)
}

fn charge_selector(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    selector_cost(Bounds::exactly(cost::size_of(args, 1))).max
}

fn estimate_selector(args: &[Operand<'_>]) -> CallEstimate {
    CallEstimate::of_cost(selector_cost(cost::bounds_of(args, 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::{Functions, Offer};
    use crate::value::authorization::Authorizer;

    /// Allows requests of service accounts, and gives their attributes as the reason.
    #[derive(Debug)]
    struct Echo;

    impl Authorizer for Echo {
        fn authorize(&self, check: &Check<'_>) -> Decision {
            let allowed = matches!(check.subject, Subject::ServiceAccount { .. });
            Decision { allowed, reason: format!("{check:?}").into(), error: None }
        }
    }

    #[test]
    fn a_check_carries_all_that_was_named() {
        let arena = bumpalo::Bump::new();
        let context = Context { arena: &arena };
        let functions =
            Functions::kubernetes(Offer { compatible: Version(1, 36), release: Version(1, 36), books: true });
        let step = |name: &str, receiver: Value<'_>, text: &'static str| {
            let args = [receiver, String(text)];
            let row = functions.get(name).unwrap().choose(&args).unwrap();
            (row.id, row.implementation)
        };
        let authorizer = Value::authorizer(&arena, &Echo);
        let (_, group) = step("group", authorizer, "apps");
        let group = group(&context, &[authorizer, String("apps")]).unwrap();
        let (_, resource) = step("resource", group, "deployments");
        let resource = resource(&context, &[group, String("deployments")]).unwrap();
        let (id, check) = step("check", resource, "create");
        assert_eq!(id, "resourcecheck_check");
        let decision = check(&context, &[resource, String("create")]).unwrap();
        let Value::Opaque(Opaque::Authorization(Authorization::Decision { allowed, reason, error })) =
            decision
        else {
            panic!("{decision:?}")
        };
        assert!(
            !allowed && error.is_none() && reason.contains("deployments") && reason.contains("create"),
            "{reason}"
        );
    }
}
