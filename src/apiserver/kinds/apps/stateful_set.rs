//! StatefulSet.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::{self, NameRule};
use serde_json::{Value, json};

use crate::kinds::core::persistent_volume_claim;
use crate::kinds::field::Field;
use crate::kinds::shared::claim::specification;
use crate::kinds::shared::defaults::{each, set_absent, set_empty};
use crate::kinds::shared::internal::shown;
use crate::kinds::shared::{
    inside, int_or_percent, label_selector, pod_spec, pod_template, replicas, workload,
};
use crate::kinds::{Naming, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "StatefulSet",
    default: Some(|_, object| default(object)),
    prepare_create: Some(|set| drop_unavailable(set, None)),
    prepare_update: Some(|set, old| drop_unavailable(set, Some(old))),
    name: Some(Naming::Rule(NameRule::Label)),
    validate: Some(validate),
    validate_update: Some(validate_update),
    validate_status: Some(validate_status),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

fn default(set: &mut Value) {
    let spec = &mut set["spec"];
    set_absent(
        spec,
        &[
            ("replicas", json!(1)),
            ("podManagementPolicy", json!("OrderedReady")),
            ("revisionHistoryLimit", json!(10)),
            (
                "persistentVolumeClaimRetentionPolicy",
                json!({"whenDeleted": "Retain", "whenScaled": "Retain"}),
            ),
        ],
    );
    for part in ["whenDeleted", "whenScaled"] {
        set_empty(&mut spec["persistentVolumeClaimRetentionPolicy"], part, json!("Retain"));
    }
    for claim in each(spec, "volumeClaimTemplates") {
        // Whatever else it was said to be.
        for (field, value) in [("kind", "PersistentVolumeClaim"), ("apiVersion", "v1")] {
            object::set_field(claim, field, Some(value.into()));
        }
        set_absent(&mut claim["spec"], &[("volumeMode", json!("Filesystem"))]);
        set_absent(&mut claim["status"], &[("phase", json!("Pending"))]);
    }
    let strategy = &mut spec["updateStrategy"];
    if strategy.get("type").and_then(Value::as_str).is_none_or(str::is_empty) {
        set_absent(strategy, &[("type", json!("RollingUpdate")), ("rollingUpdate", json!({}))]);
    }
    // Whoever names the type alone has no parameters of it.
    if strategy["type"] == "RollingUpdate"
        && let Some(rolling) = strategy.get_mut("rollingUpdate").filter(|rolling| rolling.is_object())
    {
        set_absent(rolling, &[("partition", json!(0))]);
    }
    pod_spec::defaults::fill(&mut spec["template"]["spec"]);
}

const ROLLING_UPDATE: &str = "/spec/updateStrategy/rollingUpdate";

/// How many pods may be missing at once is not looked at, which is how it is unless switched on: it goes, unless it was
/// there before.
fn drop_unavailable(set: &mut Value, old: Option<&Value>) {
    let before = workload::part(old, ROLLING_UPDATE).and_then(|rolling| rolling.get("maxUnavailable"));
    let rolling = set.pointer_mut(ROLLING_UPDATE).filter(|rolling| rolling.is_object());
    if let Some(rolling) = rolling.filter(|_| before.is_none_or(Value::is_null)) {
        object::set_field(rolling, "maxUnavailable", None);
    }
}

/// About the template where the specification is new, and always about what is stored and what is kept: a negative limit
/// keeps everything, which few mean.
fn warnings(set: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = workload::warnings(set, old, &["spec", "template"]);
    let spec = Field::root(set).get("spec");
    for claim in spec.get("volumeClaimTemplates").items() {
        // The path is that of a claim, and spells a part of it as Go does where it is a change.
        let place = if old.is_some() { claim.member("Spec") } else { claim.clone() };
        warnings.extend(persistent_volume_claim::fractions(&place.with(claim.get("spec").value())));
    }
    if spec.get("revisionHistoryLimit").integer().is_some_and(|limit| limit < 0) {
        let why = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended";
        warnings.push(why.to_owned());
    }
    warnings
}

/// What a change may touch.
const CHANGEABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];
const FROZEN: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                      'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                      'minReadySeconds' are forbidden";

fn validate(object: &Value, errors: &mut FieldErrors) {
    let spec = Field::root(object).get("spec");
    policies(&spec, errors);
    for claim in spec.get("volumeClaimTemplates").items() {
        specification(&claim.get("spec"), false, errors);
    }
    counts(&spec, errors);
    let name = spec.get("serviceName");
    if !name.is_empty() {
        name.problems(names::dns1123_label(name.text()), errors);
    }
    rest(&spec, None, errors);
}

/// The claims stay as they are, too. The name of the Service is not looked at any more: it stays as it is.
fn validate_update(object: &Value, old: &Value, errors: &mut FieldErrors) {
    let (spec, before) = (Field::root(object).get("spec"), Field::root(old).get("spec"));
    policies(&spec, errors);
    counts(&spec, errors);
    rest(&spec, Some(old), errors);
    let collected = |spec| -> Value {
        let fields = fixed(spec).map(|(name, value)| (name.to_owned(), value.clone()));
        Value::Object(fields.collect())
    };
    let name = "io.k8s.api.apps.v1.StatefulSetSpec";
    if fixed(&spec).ne(fixed(&before)) && !inside::alike(name, &collected(&spec), &collected(&before)) {
        errors.add(|| spec.forbidden(FROZEN));
    }
}

/// What of a specification may not change, null left out.
fn fixed<'o>(spec: &Field<'o>) -> impl Iterator<Item = (&'o str, &'o Value)> + use<'o> {
    let fields = spec.entries().filter(|(name, field)| field.is_set() && !CHANGEABLE.contains(name));
    fields.map(|(name, field)| (name, field.value()))
}

fn policies(spec: &Field<'_>, errors: &mut FieldErrors) {
    let management = spec.get("podManagementPolicy");
    match management.text() {
        "" => errors.add(|| management.required("")),
        "OrderedReady" | "Parallel" => {}
        _ => errors.add(|| management.invalid("must be 'OrderedReady' or 'Parallel'")),
    }
    strategy(&spec.get("updateStrategy"), errors);
    let retention = spec.get("persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"] {
        let policy = retention.get(field);
        if retention.is_set() && !["Retain", "Delete"].contains(&policy.text()) {
            errors.add(|| policy.not_supported(&["Retain", "Delete"]));
        }
    }
}

fn strategy(strategy: &Field<'_>, errors: &mut FieldErrors) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "" => errors.add(|| strategy.required("")),
        "OnDelete" if rolling.is_set() => errors.add(|| {
            let shown = shown(&rolling, "io.k8s.api.apps.v1.RollingUpdateStatefulSetStrategy");
            rolling.invalid_as(shown, "only allowed for updateStrategy 'RollingUpdate'")
        }),
        "OnDelete" => {}
        "RollingUpdate" => rolling_update(&rolling, errors),
        _ => errors.add(|| {
            let shown = shown(strategy, "io.k8s.api.apps.v1.StatefulSetUpdateStrategy");
            strategy.invalid_as(shown, "must be 'RollingUpdate' or 'OnDelete'")
        }),
    }
}

fn rolling_update(rolling: &Field<'_>, errors: &mut FieldErrors) {
    rolling.get("partition").not_negative(errors);
    let unavailable = rolling.get("maxUnavailable");
    if unavailable.is_set() {
        int_or_percent::not_negative(&unavailable, errors);
        if int_or_percent::number(&unavailable) == 0 {
            errors.add(|| unavailable.invalid("cannot be 0"));
        }
        int_or_percent::at_most_all(&unavailable, errors);
    }
}

fn counts(spec: &Field<'_>, errors: &mut FieldErrors) {
    replicas::not_negative(spec, &["replicas", "minReadySeconds"], errors);
    spec.get("ordinals").get("start").not_negative(errors);
}

fn rest(spec: &Field<'_>, old: Option<&Value>, errors: &mut FieldErrors) {
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    if super::selector(&selector, "statefulset", errors) {
        super::is_chosen(&selector, &template, errors);
        // Labels and annotations are told of twice: by themselves, and with the rest of the template.
        let labels = template.get("labels").with(workload::labels_of(&template).value());
        label_selector::label_pairs(&labels, errors);
        pod_template::annotations(&template, errors);
        let whole = workload::with_claims(template.value(), &spec.get("volumeClaimTemplates"));
        pod_template::validate(&template.with(&whole), workload::part(old, super::TEMPLATE), errors);
    } else {
        errors.add(|| selector.invalid(""));
    }
    workload::runs_always(&template, "StatefulSet", errors);
}

fn validate_status(object: &Value, old: &Value, errors: &mut FieldErrors) {
    let status = Field::root(object).get("status");
    let counts = [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ];
    replicas::not_negative(&status, &counts, errors);
    let parts = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    replicas::at_most(&status, &parts, "replicas", "status.replicas", errors);
    let ready = "status.readyReplicas";
    replicas::at_most(&status, &["availableReplicas"], "readyReplicas", ready, errors);
    replicas::not_decremented(&status, &Field::root(old).get("status"), errors);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollout_leaves_some_pods_and_takes_some() {
        let told = |unavailable: Value| -> Vec<String> {
            let object = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable}});
            let mut errors = FieldErrors::default();
            strategy(&Field::root(&object), &mut errors);
            errors.into_iter().map(|error| error.to_string()).collect()
        };
        assert_eq!(told(json!("20%")), Vec::<String>::new());
        assert_eq!(told(json!("0%")), ["rollingUpdate.maxUnavailable: Invalid value: \"0%\": cannot be 0"]);
        assert_eq!(
            told(json!("101%")),
            ["rollingUpdate.maxUnavailable: Invalid value: \"101%\": must not be greater than 100%"]
        );
    }
}
