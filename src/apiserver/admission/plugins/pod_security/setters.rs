//! Describes in refusals who set a forbidden value: the pod, some of its containers, or both.

use std::collections::BTreeSet;

use serde_json::Value;

use super::subject::Subject;
use crate::admission::plugins::pods::text;

/// Formats a list as `"a", "b"`.
pub(super) fn quoted<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    texts.into_iter().map(|text| format!("\"{text}\"")).collect::<Vec<_>>().join(", ")
}

pub(super) const fn plural<'t>(one: &'t str, several: &'t str, count: usize) -> &'t str {
    if count == 1 { one } else { several }
}

/// Formats `container "a"` or `containers "a", "b"`.
pub(super) fn containers(names: &[&str]) -> String {
    format!("{} {}", plural("container", "containers", names.len()), quoted(names.iter().copied()))
}

/// Returns the names of the containers for which `is_bad` holds.
pub(super) fn named<'o>(subject: &Subject<'o>, is_bad: impl Fn(&'o Value) -> bool) -> Vec<&'o str> {
    subject
        .containers()
        .filter(|container| is_bad(container))
        .map(|container| text(container, "/name"))
        .collect()
}

/// The forbidden values of a security context field, and who set them.
#[derive(Default)]
pub(super) struct Setters<'o> {
    pub(super) pod: bool,
    pub(super) containers: Vec<&'o str>,
    pub(super) values: BTreeSet<&'o str>,
}

impl<'o> Setters<'o> {
    /// Reads the field (`/seccompProfile`) of the security contexts of the pod and of its containers; `bad` returns the
    /// forbidden values below it.
    pub(super) fn find(subject: &Subject<'o>, field: &str, bad: impl Fn(&'o Value) -> Vec<&'o str>) -> Self {
        let mut setters = Self::default();
        if let Some(own) = subject.at(&format!("/securityContext{field}")) {
            let values = bad(own);
            setters.pod = !values.is_empty();
            setters.values.extend(values);
        }
        for container in subject.containers() {
            let own = container.pointer(&format!("/securityContext{field}")).filter(|own| !own.is_null());
            let values = own.map(&bad).unwrap_or_default();
            if !values.is_empty() {
                setters.containers.push(text(container, "/name"));
                setters.values.extend(values);
            }
        }
        setters
    }

    /// Returns who set the flag or number at this path to a forbidden value.
    pub(super) fn of(subject: &Subject<'o>, field: &str, is_bad: impl Fn(&Value) -> bool) -> Self {
        Self::find(subject, field, |own| if is_bad(own) { vec![""] } else { Vec::new() })
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.pod && self.containers.is_empty()
    }

    /// Formats who set the values as `pod`, `container "a"`.
    pub(super) fn told(&self) -> Vec<String> {
        let pod = self.pod.then(|| "pod".to_owned());
        let containers = (!self.containers.is_empty()).then(|| containers(&self.containers));
        pod.into_iter().chain(containers).collect()
    }
}
