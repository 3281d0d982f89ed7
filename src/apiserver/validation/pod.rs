//! Validates the specification of a pod, in a pod or in a template.

use admit_apimachinery::names::NameRule;
use std::collections::HashSet;

use serde_json::Value;

use super::{items, not_negative, one_of, text};
use crate::status::{Cause, Causes};

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const DNS_POLICIES: [&str; 4] = ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"];
const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const MESSAGE_POLICIES: [&str; 2] = ["FallbackToLogsOnError", "File"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

pub(super) fn spec(spec: &Value, path: &str) -> Causes {
    let mut causes = volumes(spec, path);
    let known = items(spec, "volumes").iter().map(|volume| text(volume, "name")).collect();
    let containers = format!("{path}.containers");
    if items(spec, "containers").is_empty() {
        causes.push(Cause::required(containers.as_str(), ""));
    }
    for (list, list_path) in
        [("containers", containers), ("initContainers", format!("{path}.initContainers"))]
    {
        for (index, container) in items(spec, list).iter().enumerate() {
            causes.extend(self::container(&known, container, &format!("{list_path}[{index}]")));
        }
        for (index, name) in repeated(spec, list) {
            causes.push(Cause::duplicate(format!("{list_path}[{index}].name"), &name.into()));
        }
    }
    causes.extend(one_of(spec, path, "restartPolicy", &RESTART_POLICIES));
    causes.extend(one_of(spec, path, "dnsPolicy", &DNS_POLICIES));
    causes.extend(not_negative(spec, path, "terminationGracePeriodSeconds"));
    causes
}

fn volumes(spec: &Value, path: &str) -> Causes {
    let mut causes = Causes::default();
    for (index, volume) in items(spec, "volumes").iter().enumerate() {
        let path = format!("{path}.volumes[{index}]");
        causes.extend(name(volume, &path));
        let sources =
            volume.as_object().map_or(0, |members| members.keys().filter(|key| *key != "name").count());
        match sources {
            0 => causes.push(Cause::required(path, "must specify a volume type")),
            1 => {}
            _ => causes.push(Cause::forbidden(path, "may not specify more than 1 volume type")),
        }
    }
    for (index, name) in repeated(spec, "volumes") {
        causes.push(Cause::duplicate(format!("{path}.volumes[{index}].name"), &name.into()));
    }
    causes
}

/// `volumes` are the names of those of the pod.
fn container(volumes: &HashSet<&str>, container: &Value, path: &str) -> Causes {
    let mut causes = name(container, path);
    if text(container, "image").is_empty() {
        causes.push(Cause::required(format!("{path}.image"), ""));
    }
    for (index, port) in items(container, "ports").iter().enumerate() {
        let path = format!("{path}.ports[{index}]");
        match port.get("containerPort").and_then(Value::as_i64) {
            None | Some(0) => causes.push(Cause::required(format!("{path}.containerPort"), "")),
            Some(1..=65535) => {}
            Some(number) => causes.push(Cause::invalid(
                format!("{path}.containerPort"),
                &number.into(),
                "must be between 1 and 65535, inclusive",
            )),
        }
        causes.extend(one_of(port, &path, "protocol", &PROTOCOLS));
    }
    for (index, variable) in items(container, "env").iter().enumerate() {
        if text(variable, "name").is_empty() {
            causes.push(Cause::required(format!("{path}.env[{index}].name"), ""));
        }
        causes.extend(source(variable, &format!("{path}.env[{index}].valueFrom")));
    }
    causes.extend(mounts(volumes, container, path));
    causes.extend(one_of(container, path, "terminationMessagePolicy", &MESSAGE_POLICIES));
    causes.extend(one_of(container, path, "imagePullPolicy", &PULL_POLICIES));
    causes
}

/// Where the value of a variable comes from, if it is not given: one place, with what finds it there.
fn source(variable: &Value, path: &str) -> Option<Cause> {
    let sources = variable.get("valueFrom")?.as_object()?;
    match sources.iter().next() {
        None => Some(Cause::invalid(
            path,
            &"".into(),
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        )),
        Some((kind, from)) if kind == "fieldRef" && text(from, "fieldPath").is_empty() => {
            Some(Cause::required(format!("{path}.fieldRef.fieldPath"), ""))
        }
        Some(_) => None,
    }
}

fn mounts(volumes: &HashSet<&str>, container: &Value, path: &str) -> Causes {
    let mut causes = Causes::default();
    for (index, mount) in items(container, "volumeMounts").iter().enumerate() {
        let path = format!("{path}.volumeMounts[{index}]");
        let volume = text(mount, "name");
        if volume.is_empty() {
            causes.push(Cause::required(format!("{path}.name"), ""));
        }
        if !volumes.contains(volume) {
            causes.push(Cause::not_found(format!("{path}.name"), &volume.into()));
        }
        if text(mount, "mountPath").is_empty() {
            causes.push(Cause::required(format!("{path}.mountPath"), ""));
        }
    }
    causes
}

/// Names of containers and volumes are DNS labels.
fn name(named: &Value, path: &str) -> Causes {
    let field = format!("{path}.name");
    match text(named, "name") {
        "" => Causes::from(Cause::required(field, "")),
        name => {
            let problems = NameRule::Label.problems(name, false);
            problems.iter().map(|problem| Cause::invalid(field.as_str(), &name.into(), problem)).collect()
        }
    }
}

/// The named items that repeat an earlier name.
fn repeated<'v>(list: &'v Value, name: &str) -> Vec<(usize, &'v str)> {
    let mut earlier = HashSet::new();
    let names = items(list, name).iter().map(|item| text(item, "name")).enumerate();
    names.filter(|(_, name)| !earlier.insert(*name)).collect()
}
