//! Answers authorizer checks by SubjectAccessReviews of the cluster.

use crate::telemetry::with_causes;
use admit_policy::{Access, AccessAttributes, HostError, UserInfo};
use k8s_openapi::api::authorization::v1::{
    FieldSelectorAttributes, LabelSelectorAttributes, NonResourceAttributes, ResourceAttributes,
    SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

/// Asks whether `user` may do what `attributes` describe.
///
/// # Errors
/// When the cluster does not respond, or cannot evaluate the review. For expressions that is the `error()` of a check that
/// is not `allowed()`, as for a failing authorizer of kube-apiserver; it does not abort the expression.
pub(super) async fn review(
    client: Client,
    user: &UserInfo,
    attributes: &AccessAttributes,
) -> Result<Access, HostError> {
    let review = SubjectAccessReview { spec: spec(user, attributes), ..SubjectAccessReview::default() };
    let answered = Api::<SubjectAccessReview>::all(client).create(&PostParams::default(), &review).await;
    let status = answered
        .map_err(|error| HostError(format!("access cannot be checked: {}", with_causes(&error))))?
        .status;
    let status = status.unwrap_or_default();
    match status.evaluation_error {
        Some(error) if !status.allowed => Err(HostError(error)),
        _ => Ok(Access { allowed: status.allowed, reason: status.reason.unwrap_or_default() }),
    }
}

fn spec(user: &UserInfo, attributes: &AccessAttributes) -> SubjectAccessReviewSpec {
    let mut spec = SubjectAccessReviewSpec {
        user: Some(user.username.clone()),
        uid: Some(user.uid.clone()).filter(|uid| !uid.is_empty()),
        groups: Some(user.groups.clone()),
        extra: Some(user.extra.iter().map(|(key, values)| (key.clone(), values.clone())).collect()),
        ..SubjectAccessReviewSpec::default()
    };
    let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    match attributes {
        AccessAttributes::Path { verb, path } => {
            spec.non_resource_attributes = Some(NonResourceAttributes { path: some(path), verb: some(verb) });
        }
        AccessAttributes::Resource {
            verb,
            group,
            version,
            resource,
            subresource,
            namespace,
            name,
            field_selector,
            label_selector,
        } => {
            spec.resource_attributes = Some(ResourceAttributes {
                verb: some(verb),
                group: some(group),
                version: some(version),
                resource: some(resource),
                subresource: some(subresource),
                namespace: some(namespace),
                name: some(name),
                // Sent unparsed: the API server parses the selector itself.
                field_selector: some(field_selector)
                    .map(|raw| FieldSelectorAttributes { raw_selector: Some(raw), requirements: None }),
                label_selector: some(label_selector)
                    .map(|raw| LabelSelectorAttributes { raw_selector: Some(raw), requirements: None }),
            });
        }
    }
    spec
}
