//! Defines the strategy of LimitRanges. Read from pkg/apis/core/validation, pkg/apis/core/v1/defaults.go and
//! pkg/registry/core/limitrange of Kubernetes 1.36.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet};

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;
use admit_apimachinery::labels;
use serde_json::Value;

use crate::interrupt;
use crate::kinds::field::Field;
use crate::kinds::shared::amount::Amount;
use crate::kinds::shared::defaults::set_absent;
use crate::kinds::shared::resource_names;
use crate::kinds::{Habit, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "LimitRange",
    habits: &[Habit::CreatedByUpdate, Habit::ChangeOnce, Habit::ObjectAgain],
    default: Some(default),
    prepare_create: Some(prepare_create),
    validate: Some(validate),
    ..Strategy::PLAIN
};

/// Sets defaults for containers: the limit is the maximum, and the request is the limit, or else the minimum.
fn default(_: &str, range: &mut Value) {
    let limits = range.pointer_mut("/spec/limits").and_then(Value::as_array_mut);
    for limit in limits.into_iter().flatten() {
        if limit.get("type").is_none_or(|kind| kind != "Container") {
            continue;
        }
        for (field, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
            let given = limit.get(from).and_then(Value::as_object).cloned().unwrap_or_default();
            for (resource, amount) in given {
                interrupt::checkpoint();
                set_absent(&mut limit[field], &[(&resource, amount)]);
            }
        }
    }
}

/// Generates a missing name.
fn prepare_create(range: &mut Value) {
    if object::name(range).is_empty() {
        object::set_meta(range, "name", Some(uuid::Uuid::new_v4().to_string().into()));
    }
}

fn validate(range: &Value, errors: &mut FieldErrors) {
    let mut types = HashSet::new();
    for limit in Field::root(range).get("spec").get("limits").items() {
        let kind = limit.get("type");
        limit_type(&kind, errors);
        if !types.insert(kind.text()) {
            errors.add(|| kind.duplicate());
        }
        let resources = names(&limit, errors);
        for resource in resources {
            Of::new(&limit, resource).compare(errors);
        }
    }
}

fn limit_type(kind: &Field<'_>, errors: &mut FieldErrors) {
    let problems = labels::key(kind.text());
    if problems.is_empty()
        && !kind.text().contains('/')
        && !["Pod", "Container", "PersistentVolumeClaim"].contains(&kind.text())
    {
        errors.add(|| kind.invalid("must be a standard limit type or fully qualified"));
    }
    kind.problems(problems, errors);
}

/// Validates the names of the limited resources, and returns them.
fn names<'o>(limit: &Field<'o>, errors: &mut FieldErrors) -> BTreeSet<&'o str> {
    let kind = limit.get("type").text();
    let mut names = BTreeSet::new();
    let mut look = |field: &'static str, errors: &mut FieldErrors| {
        for (resource, amount) in limit.get(field).entries() {
            match kind {
                "Pod" | "Container" => resource_names::of_container(resource, &amount, errors),
                _ => {
                    resource_names::any(resource, &amount, errors);
                }
            }
            names.insert(resource);
        }
    };
    look("max", errors);
    look("min", errors);
    for field in ["default", "defaultRequest"] {
        if kind != "Pod" {
            look(field, errors);
        } else if !limit.get(field).is_empty() {
            errors.add(|| limit.get(field).forbidden("may not be specified when `type` is 'Pod'"));
        }
    }
    let bounds =
        |field: &'static str| limit.get(field).map().is_some_and(|amounts| amounts.contains_key("storage"));
    if kind == "PersistentVolumeClaim" && !bounds("min") && !bounds("max") {
        let why = "either minimum or maximum storage value is required, but neither was provided";
        errors.add(|| limit.get("limits").required(why));
    }
    look("maxLimitRequestRatio", errors);
    names
}

/// The limits for one resource.
struct Of<'o, 'f> {
    limit: &'f Field<'o>,
    resource: &'o str,
    min: Option<Amount<'o>>,
    max: Option<Amount<'o>>,
    default: Option<Amount<'o>>,
    request: Option<Amount<'o>>,
    ratio: Option<Amount<'o>>,
}

impl<'o, 'f> Of<'o, 'f> {
    fn new(limit: &'f Field<'o>, resource: &'o str) -> Self {
        let is_pod = limit.get("type").text() == "Pod";
        let of = |field: &'static str| limit.get(field).map()?.get(resource).map(Amount::read);
        Self {
            limit,
            resource,
            min: of("min"),
            max: of("max"),
            default: of("default").filter(|_| !is_pod),
            request: of("defaultRequest").filter(|_| !is_pod),
            ratio: of("maxLimitRequestRatio"),
        }
    }

    fn refuse(&self, field: &'static str, shown: &Amount<'_>, why: String, errors: &mut FieldErrors) {
        errors.add(|| self.limit.get(field).key(self.resource).invalid_as(shown.text(), why));
    }

    fn compare(&self, errors: &mut FieldErrors) {
        let Self { min, max, default, request, .. } = self;
        let mut above =
            |field, which: usize, one: (&str, &Option<Amount<'_>>), other: (&str, &Option<Amount<'_>>)| {
                let (Some(more), Some(less)) = (one.1, other.1) else { return };
                if more.compare(less).is_gt() {
                    let shown = if which == 0 { more } else { less };
                    let why = format!(
                        "{} value {} is greater than {} value {}",
                        one.0,
                        more.text(),
                        other.0,
                        less.text()
                    );
                    self.refuse(field, shown, why, errors);
                }
            };
        above("min", 0, ("min", min), ("max", max));
        above("defaultRequest", 1, ("min", min), ("default request", request));
        above("defaultRequest", 0, ("default request", request), ("max", max));
        above("defaultRequest", 0, ("default request", request), ("default limit", default));
        above("default", 0, ("min", min), ("default", default));
        above("default", 1, ("default", default), ("max", max));
        self.ratio(errors);
        if let (Some(default), Some(request)) = (default, request)
            && !resource_names::may_be_overcommitted(self.resource)
            && default.compare(request) != Ordering::Equal
        {
            let why = format!(
                "default value {} must equal to defaultRequest value {} in {}",
                default.text(),
                request.text(),
                self.resource
            );
            self.refuse("defaultRequest", request, why, errors);
        }
    }

    /// Validates the maximum ratio of limit to request.
    fn ratio(&self, errors: &mut FieldErrors) {
        let Some(ratio) = &self.ratio else { return };
        let field = "maxLimitRequestRatio";
        if ratio.approximate() < 1.0 {
            self.refuse(field, ratio, format!("ratio {} is less than 1", ratio.text()), errors);
        }
        let (Some(min), Some(max)) = (&self.min, &self.max) else { return };
        let most = max.approximate() / min.approximate();
        if ratio.approximate() > most {
            let why =
                format!("ratio {} is greater than max/min = {}", ratio.text(), go::float::fixed(most, 6));
            self.refuse(field, ratio, why, errors);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_fit_together() {
        let range = json!({"spec": {"limits": [
            {"type": "Pod", "default": {"cpu": "1"}, "max": {"cpu": "1"}},
            {"type": "PersistentVolumeClaim", "max": {"x": "1"}},
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "500m"},
                "default": {"hugepages-2Mi": "2Mi"}, "defaultRequest": {"hugepages-2Mi": "4Mi"}},
            {"type": "Image", "max": {"cpu": "1"}},
        ]}});
        let mut errors = FieldErrors::default();
        validate(&range, &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        assert_eq!(
            texts,
            [
                "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
                "spec.limits[1].max[x]: Invalid value: \"x\": must be a standard resource type or fully qualified",
                "spec.limits[1].limits: Required value: either minimum or maximum storage value is required, but neither \
                 was provided",
                "spec.limits[2].maxLimitRequestRatio[cpu]: Invalid value: \"500m\": ratio 500m is less than 1",
                "spec.limits[2].defaultRequest[hugepages-2Mi]: Invalid value: \"4Mi\": default request value 4Mi is \
                 greater than default limit value 2Mi",
                "spec.limits[2].defaultRequest[hugepages-2Mi]: Invalid value: \"4Mi\": default value 2Mi must equal to \
                 defaultRequest value 4Mi in hugepages-2Mi",
                "spec.limits[3].type: Invalid value: \"Image\": must be a standard limit type or fully qualified",
            ]
        );
    }
}
