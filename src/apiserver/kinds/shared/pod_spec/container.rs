//! What containers of all three lists have.

use std::collections::HashSet;

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::NameRule;

use super::{Pod, env, known, mounts, ports, resources, security};
use crate::kinds::field::Field;

/// What is wrong with a container (`validateContainerCommon`).
pub(super) fn validate(container: &Field<'_>, pod: &Pod<'_>, errors: &mut FieldErrors) {
    let (name, image) = (container.get("name"), container.get("image"));
    if name.text().is_empty() {
        errors.add(|| name.required(""));
    } else {
        name.named(NameRule::Label, errors);
    }
    if image.text().is_empty() {
        errors.add(|| image.required(""));
    }
    known(&container.get("terminationMessagePolicy"), &["File", "FallbackToLogsOnError"], errors);
    ports::validate(&container.get("ports"), errors);
    env::variables(&container.get("env"), errors);
    env::from(&container.get("envFrom"), errors);
    mounts::volumes(container, pod, errors);
    mounts::devices(container, pod, errors);
    known(&container.get("imagePullPolicy"), &["Always", "IfNotPresent", "Never"], errors);
    resources::of_container(&container.get("resources"), pod, errors);
    resize_policy(&container.get("resizePolicy"), pod, errors);
    security::of_container(&container.get("securityContext"), pod, errors);
}

/// Pods have images without blanks around them; templates may have them.
pub(crate) fn image_is_trimmed(container: &Field<'_>, errors: &mut FieldErrors) {
    let image = container.get("image");
    if image.text().trim() != image.text() {
        errors.add(|| image.invalid("must not have leading or trailing whitespace"));
    }
}

/// Errors name the list, not its items.
fn resize_policy(list: &Field<'_>, pod: &Pod<'_>, errors: &mut FieldErrors) {
    let mut seen = HashSet::new();
    for policy in list.items() {
        let at_list = |name: &'static str| list.with(policy.get(name).value());
        let (resource, restart) = (at_list("resourceName"), at_list("restartPolicy"));
        if !seen.insert(resource.text()) {
            errors.add(|| policy.with(resource.value()).duplicate());
        }
        known(&resource, &["cpu", "memory"], errors);
        known(&restart, &["NotRequired", "RestartContainer"], errors);
        if pod.restart_policy == "Never" && restart.text() != "NotRequired" {
            errors.add(|| restart.invalid("must be 'NotRequired' when pod `restartPolicy` is 'Never'"));
        }
    }
}

/// The resize policies of a container by which it starts anew.
pub(super) fn restarts_when_resized<'o>(container: &Field<'o>) -> impl Iterator<Item = Field<'o>> + use<'o> {
    let restarts = container.get("resizePolicy").items().map(|policy| policy.get("restartPolicy"));
    restarts.filter(|restart| restart.text() == "RestartContainer")
}

/// Exit codes of which one rule may tell.
const MOST_EXIT_CODES: i64 = 255;
/// Rules of one container.
const MOST_RULES: i64 = 20;

/// The same of one that runs before the others: nobody looks at rules that stand there without a policy.
pub(super) fn init_restart_policy(container: &Field<'_>, errors: &mut FieldErrors) {
    let policy = container.get("restartPolicy");
    if policy.is_set() {
        restart_policy(container, errors);
    } else if !container.get("restartPolicyRules").is_empty() {
        errors.add(|| policy.required("must specify restartPolicy when restart rules are used"));
    }
}

/// When a container starts anew, otherwise than its pod says.
pub(super) fn restart_policy(container: &Field<'_>, errors: &mut FieldErrors) {
    let (policy, rules) = (container.get("restartPolicy"), container.get("restartPolicyRules"));
    if policy.is_set() {
        super::known_if_set(&policy, &["Always", "Never", "OnFailure"], errors);
    } else if !rules.is_empty() {
        errors.add(|| policy.required("must specify restartPolicy when restart rules are used"));
    }
    if i64::try_from(rules.len()).is_ok_and(|count| count > MOST_RULES) {
        errors.add(|| rules.too_many(MOST_RULES));
    }
    for rule in rules.items() {
        let (action, codes) = (rule.get("action"), rule.get("exitCodes"));
        if !["Restart", "RestartAllContainers"].contains(&action.text()) {
            errors.add(|| action.not_supported(&["Restart", "RestartAllContainers"]));
        }
        if !codes.is_set() {
            errors.add(|| codes.required("must be specified"));
            continue;
        }
        let (operator, values) = (codes.get("operator"), codes.get("values"));
        if !["In", "NotIn"].contains(&operator.text()) {
            errors.add(|| operator.not_supported(&["In", "NotIn"]));
        }
        if i64::try_from(values.len()).is_ok_and(|count| count > MOST_EXIT_CODES) {
            errors.add(|| values.too_many(MOST_EXIT_CODES));
        }
    }
}
