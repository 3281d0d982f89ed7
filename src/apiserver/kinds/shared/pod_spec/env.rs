//! Validates environment variables of containers, and the sources of their values.

use std::collections::HashMap;

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::labels;
use admit_apimachinery::names::NameRule;
use admit_apimachinery::quantity::Quantity;

use crate::kinds::field::Field;
use crate::kinds::shared::config_key;

/// Validates the variables of a container.
pub(super) fn variables(list: &Field<'_>, errors: &mut FieldErrors) {
    for variable in list.items() {
        let name = variable.get("name");
        if name.text().is_empty() {
            errors.add(|| name.required(""));
        } else {
            variable_name(&name, errors);
        }
        let from = variable.get("valueFrom");
        if from.is_set() {
            value_from(&from, variable.get("value").text(), errors);
        }
    }
}

/// Requires printable ASCII characters other than `=`.
fn variable_name(name: &Field<'_>, errors: &mut FieldErrors) {
    let is_fine = |c: char| matches!(c, ' '..='~') && c != '=';
    if !name.text().chars().all(is_fine) {
        let why = "a valid environment variable name must consist only of printable ASCII characters other than '='";
        errors.add(|| name.invalid(why));
    }
}

fn value_from(from: &Field<'_>, value: &str, errors: &mut FieldErrors) {
    let mut sources: usize = 0;
    let given = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    for (name, source) in given.into_iter().map(|name| (name, from.get(name))).filter(|(_, it)| it.is_set()) {
        sources = sources.saturating_add(1);
        match name {
            "fieldRef" => field_reference(&source, &IN_VARIABLES, errors),
            "resourceFieldRef" => resource_reference(&source, false, errors),
            "fileKeyRef" => file_key(&source, errors),
            _ => key_reference(&source, errors),
        }
    }
    let why = match sources {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if !value.is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.add(|| from.invalid_as("", why));
}

fn key_reference(source: &Field<'_>, errors: &mut FieldErrors) {
    let (name, key) = (source.get("name"), source.get("key"));
    name.named(NameRule::Subdomain, errors);
    if key.text().is_empty() {
        errors.add(|| key.required(""));
    } else {
        key.problems(config_key::problems(key.text()), errors);
    }
}

fn file_key(source: &Field<'_>, errors: &mut FieldErrors) {
    let (volume, path, key) = (source.get("volumeName"), source.get("path"), source.get("key"));
    if key.text().is_empty() {
        errors.add(|| key.required(""));
    } else {
        variable_name(&key, errors);
    }
    if volume.text().is_empty() {
        errors.add(|| volume.required(""));
    } else {
        volume.named(NameRule::Label, errors);
    }
    if path.text().is_empty() {
        errors.add(|| path.required(""));
    } else {
        super::no_backsteps(&path, errors);
    }
}

/// Volumes from which variables are read as files must be of type `emptyDir`.
pub(super) fn file_volumes(spec: &Field<'_>, errors: &mut FieldErrors) {
    // Of several volumes with the same name the last counts.
    let volumes: HashMap<&str, Field<'_>> =
        spec.get("volumes").items().map(|volume| (volume.get("name").text(), volume)).collect();
    let variables = super::all_containers(spec).flat_map(|container| container.get("env").items());
    for source in variables.map(|variable| variable.get("valueFrom").get("fileKeyRef")) {
        let name = source.get("volumeName");
        match volumes.get(name.text()) {
            _ if !source.is_set() => {}
            None => errors.add(|| name.not_found()),
            Some(volume) if !volume.get("emptyDir").is_set() => {
                errors.add(|| name.invalid("referenced volume must be of type emptyDir"));
            }
            Some(_) => {}
        }
    }
}

/// Validates `envFrom`, whose sources give a variable for each key. Some errors name the list, not the item.
pub(super) fn from(list: &Field<'_>, errors: &mut FieldErrors) {
    for source in list.items() {
        let prefix = source.get("prefix");
        if !prefix.text().is_empty() {
            variable_name(&prefix, errors);
        }
        let mut sources: usize = 0;
        for given in
            ["configMapRef", "secretRef"].into_iter().map(|name| source.get(name)).filter(Field::is_set)
        {
            sources = sources.saturating_add(1);
            let name = given.get("name");
            if name.text().is_empty() {
                errors.add(|| name.required(""));
            } else {
                name.problems(NameRule::Subdomain.problems(name.text(), true), errors);
            }
        }
        let why = match sources {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.add(|| list.invalid_as("", why));
    }
}

const IN_VARIABLES: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Pod fields that files of downward API volumes may contain.
pub(super) const IN_FILES: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// Pod fields that were ever allowed in references.
const EVER: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName", "status.phase"];

/// Validates a reference to a field of the pod, which must be one of `known`.
pub(super) fn field_reference(reference: &Field<'_>, known: &[&str], errors: &mut FieldErrors) {
    let (version, path) = (reference.get("apiVersion"), reference.get("fieldPath"));
    if let Some(missing) = [&version, &path].into_iter().find(|field| field.text().is_empty()) {
        return errors.add(|| missing.required(""));
    }
    let text = path.text();
    let subscripted = subscript(text);
    let supports_it = |of: &str| matches!(of, "metadata.annotations" | "metadata.labels");
    let unknown = match subscripted {
        _ if version.text() != "v1" => Some(format!("unsupported pod version: {}", version.text())),
        Some((of, _)) if !supports_it(of) => Some(format!("field label does not support subscript: {text}")),
        Some(_) => None,
        None if text == "spec.host" || IN_VARIABLES.contains(&text) || EVER.contains(&text) => None,
        None => Some(format!("field label not supported: {text}")),
    };
    if let Some(unknown) = unknown {
        return errors.add(|| path.invalid(format!("error converting fieldPath: {unknown}")));
    }
    match subscripted {
        Some((of, key)) => {
            // Keys of annotations are compared without case.
            let key = if of == "metadata.annotations" { key.to_lowercase() } else { key.to_owned() };
            for problem in labels::key(&key) {
                errors.add(|| reference.invalid_as(key.as_str(), problem));
            }
        }
        None => {
            let inner = if text == "spec.host" { "spec.nodeName" } else { text };
            if !known.contains(&inner) {
                let inner = serde_json::Value::from(inner);
                errors.add(|| path.with(&inner).not_supported(known));
            }
        }
    }
}

/// Splits `metadata.labels['a']` into the field and the key in brackets.
fn subscript(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['").filter(|(of, _)| !of.is_empty())
}

const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// Validates a reference to a request or limit of a container.
pub(super) fn resource_reference(reference: &Field<'_>, names_container: bool, errors: &mut FieldErrors) {
    let (container, resource) = (reference.get("containerName"), reference.get("resource"));
    let name = resource.text();
    let is_huge_page = name.starts_with("limits.hugepages-") || name.starts_with("requests.hugepages-");
    if names_container && container.text().is_empty() {
        errors.add(|| container.required(""));
    } else if name.is_empty() {
        errors.add(|| resource.required(""));
    } else if !RESOURCES.contains(&name) && !is_huge_page {
        errors.add(|| resource.not_supported(&RESOURCES));
    }
    let divisor = reference.get("divisor");
    let Ok(amount) = Quantity::parse(divisor.text()) else { return };
    if amount.sign().is_eq() {
        return;
    }
    let of = match name.split_once('.').map(|(_, of)| of) {
        Some("cpu") => "cpu",
        Some("memory") => "memory",
        Some("ephemeral-storage") => "local ephemeral storage",
        _ if is_huge_page => "hugepages",
        _ => return,
    };
    let amount = amount.to_string();
    let (units, said): (&[&str], _) =
        if of == "cpu" { (&["1m", "1"], "1m and 1".to_owned()) } else { (&BYTES, BYTES.join(", ")) };
    if !units.contains(&amount.as_str()) {
        let why = format!("only divisor's values {said} are supported with the {of} resource");
        errors.add(|| divisor.invalid_as(name, why));
    }
}

const BYTES: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
