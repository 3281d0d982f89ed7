//! Validates the DNS configuration, host aliases and hostnames of a pod.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::NameRule;

use crate::kinds::field::Field;
use crate::kinds::shared::network;

const MOST_SERVERS: usize = 3;
const MOST_SEARCHES: usize = 32;
const LONGEST_SEARCHES: usize = 2048;

/// Validates the DNS configuration.
pub(super) fn config(spec: &Field<'_>, errors: &mut FieldErrors) {
    let config = spec.get("dnsConfig");
    let servers = config.get("nameservers");
    if spec.get("dnsPolicy").text() == "None" {
        if !config.is_set() {
            return errors.add(|| config.required("must provide `dnsConfig` when `dnsPolicy` is None"));
        }
        if servers.is_empty() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return errors.add(|| servers.required(why));
        }
    }
    if servers.len() > MOST_SERVERS {
        let why = format!("must not have more than {MOST_SERVERS} nameservers");
        errors.add(|| servers.invalid_as(servers.shown_texts(), why));
    }
    for server in servers.items() {
        network::legacy_address(&server, errors);
    }
    searches(&config.get("searches"), errors);
    for option in config.get("options").items() {
        if option.get("name").text().is_empty() {
            errors.add(|| option.required("must not be empty"));
        }
    }
}

fn searches(list: &Field<'_>, errors: &mut FieldErrors) {
    if list.len() > MOST_SEARCHES {
        let why = format!("must not have more than {MOST_SEARCHES} search paths");
        errors.add(|| list.invalid_as(list.shown_texts(), why));
    }
    // Including a blank between each two.
    let length = list.texts().map(str::len).sum::<usize>().saturating_add(list.len().saturating_sub(1));
    if length > LONGEST_SEARCHES {
        let why = format!(
            "must not have more than {LONGEST_SEARCHES} characters (including spaces) in the search list"
        );
        errors.add(|| list.invalid_as(list.shown_texts(), why));
    }
    for search in list.items().filter(|search| search.text() != ".") {
        let name = search.text().strip_suffix('.').unwrap_or(search.text());
        for problem in search_problems(name) {
            errors.add(|| search.invalid_as(name, problem));
        }
    }
}

/// Validates a DNS subdomain whose labels may begin with an underscore.
fn search_problems(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > 253 {
        problems.push("must be no more than 253 characters".to_owned());
    }
    let is_label = |label: &str| {
        let rest = label.strip_prefix('_').unwrap_or(label);
        let is_end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = rest.as_bytes();
        bytes.first().is_some_and(is_end)
            && bytes.last().is_some_and(is_end)
            && bytes.iter().all(|byte| is_end(byte) || matches!(byte, b'-' | b'_'))
    };
    if !name.split('.').all(is_label) {
        problems.push(
            r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    problems
}

/// Validates host aliases.
pub(super) fn aliases(list: &Field<'_>, errors: &mut FieldErrors) {
    for alias in list.items() {
        network::legacy_address(&alias.get("ip"), errors);
        for name in alias.get("hostnames").items() {
            name.named(NameRule::Subdomain, errors);
        }
    }
}

/// Most characters of a hostname on Linux.
const LONGEST_HOSTNAME: i64 = 64;

/// Validates `hostnameOverride`.
pub(super) fn hostname_override(spec: &Field<'_>, errors: &mut FieldErrors) {
    let name = spec.get("hostnameOverride");
    if !name.is_set() {
        return;
    }
    if spec.get("setHostnameAsFQDN").flag() {
        errors.add(|| name.forbidden("may not be specified when setHostnameAsFQDN is true"));
    }
    if spec.get("hostNetwork").flag() {
        errors.add(|| name.forbidden("may not be specified when hostNetwork is true"));
    }
    if i64::try_from(name.text().len()).is_ok_and(|length| length > LONGEST_HOSTNAME) {
        errors.add(|| name.too_long(LONGEST_HOSTNAME));
    }
    name.named(NameRule::Subdomain, errors);
}
