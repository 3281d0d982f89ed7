//! CronJob.

use admit_apimachinery::findings::FieldErrors;
use serde_json::{Value, json};

use super::{job_spec, schedule};
use crate::kinds::field::Field;
use crate::kinds::shared::defaults::set_absent;
use crate::kinds::shared::{pod_spec, replicas, workload};
use crate::kinds::{Habit, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "CronJob",
    habits: &[Habit::StatusUnjudged],
    default: Some(|_, object| default(object)),
    validate: Some(validate),
    validate_create: Some(validate_create),
    validate_update: Some(validate_update),
    warnings: Some(|object, old| job_spec::warnings(object, old, &["spec", "jobTemplate", "spec"])),
    ..Strategy::PLAIN
};

fn default(job: &mut Value) {
    let spec = &mut job["spec"];
    set_absent(
        spec,
        &[
            ("concurrencyPolicy", json!("Allow")),
            ("suspend", json!(false)),
            ("successfulJobsHistoryLimit", json!(3)),
            ("failedJobsHistoryLimit", json!(1)),
        ],
    );
    let jobs = &mut spec["jobTemplate"]["spec"];
    job_spec::default_conditions(jobs);
    pod_spec::defaults::fill(&mut jobs["template"]["spec"]);
}

/// The names of Jobs have 11 more characters, and are host names.
const LONGEST_NAME: usize = 52;

fn validate(object: &Value, errors: &mut FieldErrors) {
    spec(object, None, errors);
}

fn validate_create(object: &Value, errors: &mut FieldErrors) {
    let name = Field::root(object).get("metadata").get("name");
    if object::name(object).len() > LONGEST_NAME {
        errors.add(|| name.invalid("must be no more than 52 characters"));
    }
}

fn validate_update(object: &Value, old: &Value, errors: &mut FieldErrors) {
    spec(object, Some(old), errors);
}

fn spec(object: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let spec = Field::root(object).get("spec");
    let before = old.map(|old| Field::root(old).get("spec"));
    let zone = spec.get("timeZone");
    let zoned_before = before.as_ref().is_some_and(|spec| spec.get("schedule").text().contains("TZ"));
    schedule(&spec.get("schedule"), zoned_before, zone.is_set(), errors);
    spec.get("startingDeadlineSeconds").not_negative(errors);
    if before.is_none_or(|spec| spec.get("timeZone").value() != zone.value()) {
        time_zone(&zone, errors);
    }
    let policy = spec.get("concurrencyPolicy");
    match policy.text() {
        "" => errors.add(|| policy.required("")),
        _ => policy.one_of(&["Allow", "Forbid", "Replace"], errors),
    }
    let template = workload::part(old, "/spec/jobTemplate/spec/template");
    job_spec::template(&spec.get("jobTemplate"), template, errors);
    replicas::not_negative(&spec, &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"], errors);
}

/// A schedule names no zone, unless it did before.
fn schedule(schedule: &Field<'_>, zoned_before: bool, has_zone: bool, errors: &mut FieldErrors) {
    if schedule.is_empty() {
        return errors.add(|| schedule.required(""));
    }
    if let Err(why) = schedule::check(schedule.text()) {
        errors.add(|| schedule.invalid(why.to_string()));
    }
    let zoned = schedule.text().contains("TZ");
    if zoned && zoned_before && has_zone {
        errors.add(|| schedule.invalid("cannot use both timeZone field and TZ or CRON_TZ in schedule"));
    } else if zoned && !zoned_before {
        errors.add(|| schedule.invalid("cannot use TZ or CRON_TZ in schedule, use timeZone field instead"));
    }
}

fn time_zone(zone: &Field<'_>, errors: &mut FieldErrors) {
    if !zone.is_set() {
        return;
    }
    let name = zone.text();
    if name.is_empty() {
        return errors.add(|| zone.invalid("timeZone must be nil or non-empty string"));
    }
    if !name.split('/').all(is_zone_part) {
        return errors.add(|| zone.invalid(format!("unknown time zone {name}")));
    }
    if name.eq_ignore_ascii_case("Local") {
        let why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.add(|| zone.invalid(why));
    }
    if let Err(why) = schedule::zone_exists(name) {
        errors.add(|| zone.invalid(why.to_string()));
    }
}

fn is_zone_part(part: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte);
    (1..=14).contains(&part.len())
        && !part.starts_with('-')
        && !matches!(part, "." | "..")
        && part.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_stand_beside_schedules() {
        let told = |text: &str, zoned_before: bool, has_zone: bool| -> Vec<String> {
            let value = json!(text);
            let mut errors = FieldErrors::default();
            schedule(&Field::root(&value), zoned_before, has_zone, &mut errors);
            errors.into_iter().map(|error| error.detail).collect()
        };
        let zoned = "TZ=UTC 0 0 * * *";
        assert_eq!(told(zoned, true, false), Vec::<String>::new());
        assert_eq!(
            told(zoned, false, false),
            ["cannot use TZ or CRON_TZ in schedule, use timeZone field instead"]
        );
        assert_eq!(told(zoned, true, true), ["cannot use both timeZone field and TZ or CRON_TZ in schedule"]);
    }

    #[test]
    fn zones_are_named_as_the_database_names_them() {
        let told = |zone: &str| -> Vec<String> {
            let value = json!(zone);
            let mut errors = FieldErrors::default();
            time_zone(&Field::root(&value), &mut errors);
            errors.into_iter().map(|error| error.detail).collect()
        };
        for fine in ["UTC", "Europe/Berlin", "Etc/GMT+5"] {
            assert_eq!(told(fine), Vec::<String>::new(), "{fine}");
        }
        assert_eq!(told("local").len(), 2);
        assert_eq!(told("Europe//Berlin"), ["unknown time zone Europe//Berlin"]);
        assert_eq!(told("Mars/Base"), ["unknown time zone Mars/Base"]);
    }
}
