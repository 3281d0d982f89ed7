//! Ingress: hosts and paths, and the backends that they lead to.

use std::collections::HashSet;

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;
use admit_apimachinery::names::{NameRule, wildcard_subdomain};
use serde_json::Value;

use crate::kinds::field::Field;
use crate::kinds::shared::{network, reference};
use crate::kinds::{Habit, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "Ingress",
    habits: &[Habit::ObjectAgain],
    validate_create: Some(create),
    validate_update: Some(update),
    validate_status: Some(status),
    warnings: Some(warnings),
    status_warnings: Some(network::balancer_warnings),
    ..Strategy::PLAIN
};

const CLASS: &str = "kubernetes.io/ingress.class";
const NO_NAME: &str = "must be a DNS name, not an IP address";

/// Rules that the stored object breaks already, and so may the new one.
#[derive(Clone, Copy, Default)]
struct Leave {
    /// Names of TLS secrets may be any.
    secret_names: bool,
    /// Rules of hosts with a wildcard may be any.
    wildcard_rules: bool,
}

impl Leave {
    fn of(old: &Field<'_>) -> Self {
        let secret_names = old.get("tls").items().any(|tls| {
            let name = tls.get("secretName").text();
            !name.is_empty() && !NameRule::Subdomain.problems(name, false).is_empty()
        });
        let wildcard_rules = old.get("rules").items().any(|rule| {
            let mut errors = FieldErrors::default();
            if rule.get("host").text().contains('*') {
                http(&rule.get("http"), &mut errors);
            }
            !errors.is_empty()
        });
        Self { secret_names, wildcard_rules }
    }
}

fn create(object: &Value, errors: &mut FieldErrors) {
    let root = Field::root(object);
    spec(&root.get("spec"), Leave::default(), errors);
    let class = root.get("spec").get("ingressClassName");
    if let Some((_, annotation)) = object::meta_map(object, "annotations").find(|(key, _)| *key == CLASS)
        && class.is_set()
        && class.text() != annotation
    {
        let why = "must match `ingressClassName` when both are specified";
        errors.add(|| root.get("annotations").get(CLASS).invalid_as(annotation, why));
    }
}

fn update(object: &Value, old: &Value, errors: &mut FieldErrors) {
    let old = Field::root(old).get("spec");
    spec(&Field::root(object).get("spec"), Leave::of(&old), errors);
}

fn spec(spec: &Field<'_>, leave: Leave, errors: &mut FieldErrors) {
    let (backend, rules) = (spec.get("defaultBackend"), spec.get("rules"));
    if rules.is_empty() && !backend.is_set() {
        let why = "either `defaultBackend` or `rules` must be specified";
        errors.add(|| spec.invalid_as(&*rules.as_sent(), why));
    }
    if backend.is_set() {
        self::backend(&backend, errors);
    }
    for rule in rules.items() {
        self::rule(&rule, leave, errors);
    }
    for tls in spec.get("tls").items() {
        self::tls(&tls, leave, errors);
    }
    let class = spec.get("ingressClassName");
    if class.is_set() {
        class.named(NameRule::Subdomain, errors);
    }
}

fn rule(rule: &Field<'_>, leave: Leave, errors: &mut FieldErrors) {
    let host = rule.get("host");
    if !host.text().is_empty() {
        if network::parse_address(host.text()).is_some() {
            errors.add(|| host.invalid(NO_NAME));
        }
        host_name(&host, errors);
    }
    if !leave.wildcard_rules || !host.text().contains('*') {
        http(&rule.get("http"), errors);
    }
}

fn host_name(host: &Field<'_>, errors: &mut FieldErrors) {
    if host.text().contains('*') {
        host.problems(wildcard_subdomain(host.text()), errors);
    } else {
        host.named(NameRule::Subdomain, errors);
    }
}

fn http(http: &Field<'_>, errors: &mut FieldErrors) {
    if !http.is_set() {
        return;
    }
    let paths = http.get("paths");
    if paths.is_empty() {
        errors.add(|| paths.required(""));
    }
    for path in paths.items() {
        self::path(&path, errors);
    }
}

fn path(rule: &Field<'_>, errors: &mut FieldErrors) {
    const SEQUENCES: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
    const ENDS: [&str; 2] = ["/..", "/."];
    let (kind, path) = (rule.get("pathType"), rule.get("path"));
    if !kind.is_set() {
        return errors.add(|| kind.required("pathType must be specified"));
    }
    let text = path.text();
    let is_absolute = text.starts_with('/');
    match kind.text() {
        "Exact" | "Prefix" => {
            if !is_absolute {
                errors.add(|| path.invalid("must be an absolute path"));
            }
            for sequence in SEQUENCES.into_iter().filter(|sequence| text.contains(sequence)) {
                errors.add(|| path.invalid(format!("must not contain '{sequence}'")));
            }
            for end in ENDS.into_iter().filter(|end| text.ends_with(end)) {
                errors.add(|| path.invalid(format!("cannot end with '{end}'")));
            }
        }
        "ImplementationSpecific" => {
            if !text.is_empty() && !is_absolute {
                errors.add(|| path.invalid("must be an absolute path"));
            }
        }
        _ => errors.add(|| kind.not_supported(&["Exact", "ImplementationSpecific", "Prefix"])),
    }
    backend(&rule.get("backend"), errors);
}

fn backend(backend: &Field<'_>, errors: &mut FieldErrors) {
    let (resource, service) = (backend.get("resource"), backend.get("service"));
    match (resource.is_set(), service.is_set()) {
        (true, true) => {
            errors.add(|| backend.invalid_as("", "cannot set both resource and service backends"));
        }
        (true, false) => reference::typed(&resource, errors),
        (false, true) => self::service(backend, &service, errors),
        (false, false) => errors.add(|| backend.invalid_as("", "resource or service backend is required")),
    }
}

fn service(backend: &Field<'_>, service: &Field<'_>, errors: &mut FieldErrors) {
    let name = service.get("name");
    if name.text().is_empty() {
        errors.add(|| name.required(""));
    } else {
        name.named(NameRule::Label, errors);
    }
    let (port_name, number) = (service.get("port").get("name"), service.get("port").get("number"));
    let has_number = number.integer().unwrap_or(0) != 0;
    match (!port_name.text().is_empty(), has_number) {
        (true, true) => errors.add(|| backend.invalid_as("", "cannot set both port name & port number")),
        (true, false) => network::port_name(&port_name, errors),
        (false, true) => network::port_number(&number, errors),
        (false, false) => errors.add(|| backend.required("port name or number is required")),
    }
}

fn tls(tls: &Field<'_>, leave: Leave, errors: &mut FieldErrors) {
    for host in tls.get("hosts").items() {
        host_name(&host, errors);
    }
    let secret = tls.get("secretName");
    if !leave.secret_names && !secret.text().is_empty() {
        secret.named(NameRule::Subdomain, errors);
    }
}

/// Addresses that are in the stored status already are not looked at again.
fn status(object: &Value, old: &Value, errors: &mut FieldErrors) {
    let points = |object| Field::root(object).get("status").get("loadBalancer").get("ingress");
    let known: HashSet<&str> = points(old).items().map(|point| point.get("ip").text()).collect();
    for point in points(object).items() {
        let (ip, hostname) = (point.get("ip"), point.get("hostname"));
        if !ip.text().is_empty() && !known.contains(ip.text()) {
            network::legacy_address(&ip, errors);
        }
        if !hostname.text().is_empty() {
            hostname.named(NameRule::Subdomain, errors);
            if network::parse_address(hostname.text()).is_some() {
                errors.add(|| hostname.invalid(NO_NAME));
            }
        }
    }
}

fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let has_class = object::meta_map(object, "annotations").any(|(key, _)| key == CLASS);
    let warning = || {
        format!("annotation {} is deprecated, please use 'spec.ingressClassName' instead", go::quote(CLASS))
    };
    (old.is_none() && has_class).then(warning).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::tests::told;

    #[test]
    fn paths_and_backends_are_plain() {
        let path = |kind: &str, path: &str| {
            let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
            json!({"spec": {"rules": [{"http": {"paths": [{"pathType": kind, "path": path, "backend": backend}]}}]}})
        };
        let at = "spec.rules[0].http.paths[0]";
        for (kind, text, wrong) in [
            ("Exact", "/a//b", "path: Invalid value: \"/a//b\": must not contain '//'"),
            ("Prefix", "/a/..", "path: Invalid value: \"/a/..\": cannot end with '/..'"),
            ("ImplementationSpecific", "a", "path: Invalid value: \"a\": must be an absolute path"),
        ] {
            assert_eq!(told(&STRATEGY, &path(kind, text), None), [format!("{at}.{wrong}")]);
        }
        assert!(told(&STRATEGY, &path("ImplementationSpecific", "/a//b"), None).is_empty());
        let both = json!({"spec": {"defaultBackend": {"service": {"name": "s", "port": {"name": "a", "number": 1}}},
            "rules": [{"host": "1.2.3.4"}, {"host": "*.a", "http": {}}, {"host": "a.*"}]}});
        let wrong = told(&STRATEGY, &both, None);
        assert_eq!(
            wrong[..3],
            [
                "spec.defaultBackend: Invalid value: \"\": cannot set both port name & port number",
                "spec.rules[0].host: Invalid value: \"1.2.3.4\": must be a DNS name, not an IP address",
                "spec.rules[1].http.paths: Required value",
            ]
        );
        assert!(
            wrong[3].starts_with("spec.rules[2].host: Invalid value: \"a.*\": a wildcard DNS-1123 subdomain")
        );
        // What the stored object has may stay.
        assert_eq!(told(&STRATEGY, &both, Some(&both)).len(), 3);
    }

    #[test]
    fn the_class_is_told_once() {
        let annotated = json!({"metadata": {"annotations": {CLASS: "a"}}, "spec": {"ingressClassName": "b",
            "defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}});
        assert_eq!(
            told(&STRATEGY, &annotated, None),
            [format!(
                "annotations.{CLASS}: Invalid value: \"a\": must match `ingressClassName` when both are specified"
            )]
        );
        assert!(told(&STRATEGY, &annotated, Some(&annotated)).is_empty());
        assert_eq!((warnings(&annotated, None).len(), warnings(&annotated, Some(&annotated)).len()), (1, 0));
    }
}
