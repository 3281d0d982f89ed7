//! Validates options of containers on Windows.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::NameRule;

use super::all_containers;
use crate::kinds::field::Field;

const LONGEST_CREDENTIALS: usize = 64 << 10;
const LONGEST_DOMAIN: usize = 256;
const LONGEST_USER: usize = 104;

/// Validates the Windows options of a pod or a container.
pub(super) fn options(options: &Field<'_>, errors: &mut FieldErrors) {
    let (name, credentials, user) = (
        options.get("gmsaCredentialSpecName"),
        options.get("gmsaCredentialSpec"),
        options.get("runAsUserName"),
    );
    if name.is_set() {
        name.named(NameRule::Subdomain, errors);
    }
    if credentials.is_set() {
        match credentials.text().len() {
            0 => errors.add(|| credentials.invalid("gmsaCredentialSpec cannot be an empty string")),
            1..=LONGEST_CREDENTIALS => {}
            _ => errors.add(|| credentials.invalid("gmsaCredentialSpec size must be under 64 KiB")),
        }
    }
    if user.is_set() {
        run_as(&user, errors);
    }
}

/// Validates `DOMAIN\user`, or a user without domain.
fn run_as(name: &Field<'_>, errors: &mut FieldErrors) {
    let text = name.text();
    let parts: Vec<&str> = text.split('\\').collect();
    let (domain, user) = match parts.as_slice() {
        _ if text.is_empty() => {
            return errors.add(|| name.invalid("runAsUserName cannot be an empty string"));
        }
        _ if text.contains(|c: char| c.is_ascii_control()) => {
            return errors.add(|| name.invalid("runAsUserName cannot contain control characters"));
        }
        [user] => (None, *user),
        [domain, user] => (Some(*domain), *user),
        _ => return errors.add(|| name.invalid("runAsUserName cannot contain more than one backslash")),
    };
    let rules = [
        (
            domain.is_some_and(|domain| domain.len() >= LONGEST_DOMAIN),
            "runAsUserName's Domain length must be under 256 characters",
        ),
        (
            domain.is_some_and(|domain| !is_net_bios(domain) && !is_dns(domain)),
            "runAsUserName's Domain doesn't match the NetBios nor the DNS format",
        ),
        (user.is_empty(), "runAsUserName's User cannot be empty"),
        (user.len() > LONGEST_USER, "runAsUserName's User length must not be longer than 104 characters"),
        (
            !user.is_empty() && user.chars().all(|c| matches!(c, '.' | ' ')),
            "runAsUserName's User cannot contain only periods or spaces",
        ),
        (
            user.contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']']),
            r#"runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]"#,
        ),
    ];
    for (_, why) in rules.into_iter().filter(|(broken, _)| *broken) {
        errors.add(|| name.invalid(why));
    }
}

fn is_net_bios(domain: &str) -> bool {
    let odd = ['\\', '/', ':', '*', '?', '"', '<', '>', '|'];
    !domain.starts_with('.') && (1..=15).contains(&domain.chars().count()) && !domain.contains(odd)
}

fn is_dns(domain: &str) -> bool {
    domain.split('.').all(|label| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        (1..=63).contains(&label.len())
            && label.chars().all(is_plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    })
}

fn host_process<'o>(owner: &Field<'o>) -> Field<'o> {
    owner.get("securityContext").get("windowsOptions").get("hostProcess")
}

/// Host process containers: all containers of a pod or none, and only on the host's network.
pub(super) fn host_processes(spec: &Field<'_>, errors: &mut FieldErrors) {
    let of_pod = host_process(spec).value().as_bool();
    let (mut count, mut on_host): (usize, usize) = (0, 0);
    for container in all_containers(spec) {
        count = count.saturating_add(1);
        let own = host_process(&container);
        if let (Some(of_pod), Some(of_container)) = (of_pod, own.value().as_bool())
            && of_pod != of_container
        {
            let why = format!("pod hostProcess value must be identical if both are specified, was {of_pod}");
            errors.add(|| own.invalid(why));
        }
        if own.value().as_bool().or(of_pod) == Some(true) {
            on_host = on_host.saturating_add(1);
        }
    }
    if on_host == 0 {
        return;
    }
    if on_host != count {
        let why =
            "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.add(|| spec.invalid_as("", why));
    }
    if !spec.get("hostNetwork").flag() {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.add(|| spec.get("hostNetwork").invalid_as(false, why));
    }
}
