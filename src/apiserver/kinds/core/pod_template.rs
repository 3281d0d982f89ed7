//! Defines the strategy of PodTemplates. Read from pkg/registry/core/podtemplate of Kubernetes 1.36.

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use crate::kinds::field::Field;
use crate::kinds::shared::{pod_spec, pod_template};
use crate::kinds::{Habit, Strategy};

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "PodTemplate",
    habits: &[Habit::AnswersDeleted],
    default: Some(|_, object| default(object)),
    validate: Some(|object, errors| validate(object, None, errors)),
    validate_update: Some(|object, old, errors| validate(object, Some(old), errors)),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

fn default(template: &mut Value) {
    pod_spec::defaults::fill(&mut template["template"]["spec"]);
}

fn validate(object: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let old = old.and_then(|old| old.get("template"));
    pod_template::validate(&Field::root(object).get("template"), old, errors);
}

fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some_and(|old| old.get("template") == object.get("template")) {
        return Vec::new();
    }
    pod_spec::warnings::of(&Field::root(object).get("template"), false)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::tests::told;

    #[test]
    fn templates_are_told_of_without_their_metadata() {
        let object = json!({"template": {"metadata": {"labels": {"a": "b c"}}, "spec": {
            "terminationGracePeriodSeconds": 1, "restartPolicy": "Always", "dnsPolicy": "Default",
            "ephemeralContainers": [{"name": "e", "image": "i", "terminationMessagePolicy": "File",
                "imagePullPolicy": "Never"}]
        }}});
        let texts = told(&STRATEGY, &object, None);
        assert!(
            texts[0].starts_with("template.labels: Invalid value: \"b c\": a valid label must be"),
            "{texts:?}"
        );
        assert_eq!(
            texts[1..],
            [
                "template.spec.containers: Required value",
                "template.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template",
            ]
        );
    }
}
