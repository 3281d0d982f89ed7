//! Sources of volumes that are not made of keys or of what the pod says: storage of all kinds.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;
use admit_apimachinery::names::NameRule;

use super::{known_if_set, named, no_backsteps};
use crate::kinds::field::Field;
use crate::kinds::shared::{claim, template_metadata};

/// Texts or lists that have to be there.
pub(super) fn required(source: &Field<'_>, names: &[&'static str], errors: &mut FieldErrors) {
    for field in names.iter().map(|name| source.get(name)).filter(Field::is_empty) {
        errors.add(|| field.required(""));
    }
}

const HOST_PATHS: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

pub(super) fn host_path(source: &Field<'_>, errors: &mut FieldErrors) {
    let path = source.get("path");
    if path.text().is_empty() {
        return errors.add(|| path.required(""));
    }
    no_backsteps(&path, errors);
    known_if_set(&source.get("type"), &HOST_PATHS, errors);
}

pub(super) fn nfs(source: &Field<'_>, errors: &mut FieldErrors) {
    required(source, &["server", "path"], errors);
    let path = source.get("path");
    if !path.text().starts_with('/') {
        errors.add(|| path.invalid_as(path.text(), "must be an absolute path"));
    }
}

pub(super) const LONG_INITIATOR: &str = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters \
                                         if iscsi.initiatorName is specified.";

pub(super) fn iscsi(source: &Field<'_>, errors: &mut FieldErrors) {
    required(source, &["targetPortal", "iqn"], errors);
    let (name, lun, secret) = (source.get("iqn"), source.get("lun"), source.get("secretRef"));
    if !name.is_empty() {
        initiator(&name, errors);
    }
    lun.in_range(0, 255, errors);
    if (source.get("chapAuthDiscovery").flag() || source.get("chapAuthSession").flag()) && !secret.is_set() {
        errors.add(|| secret.required(""));
    }
    let own = source.get("initiatorname").with(source.get("initiatorName").value());
    if own.is_set() {
        initiator(&own, errors);
    }
}

fn initiator(name: &Field<'_>, errors: &mut FieldErrors) {
    let text = name.text();
    let is_valid = match text.get(..3) {
        Some("iqn") => is_qualified(text),
        Some("eui") => has_letters(text, 16),
        Some("naa") => has_letters(text, 32),
        _ => {
            return errors
                .add(|| name.invalid_as(text, "must be valid format starting with iqn, eui, or naa"));
        }
    };
    if !is_valid {
        errors.add(|| name.invalid("must be valid format"));
    }
}

/// `eui.` or `naa.`, with any sign in place of the dot, and so many letters or digits.
fn has_letters(text: &str, count: usize) -> bool {
    let mut rest = text.chars().skip(3);
    rest.next().is_some() && rest.clone().count() == count && rest.all(|c| c.is_ascii_alphanumeric())
}

/// Contains `iqn.YYYY-MM.domain:name`, and ends with it.
fn is_qualified(text: &str) -> bool {
    let odd = |c: char| matches!(c, ',' | ';' | '*' | '&' | '$' | '|') || c.is_ascii_whitespace();
    let fits = |rest: &str| {
        let (date, rest) = rest.split_once('.')?;
        let (year, month) = date.split_once('-')?;
        let digits =
            |text: &str, count| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
        let (domain, name) = rest.split_once(':')?;
        let is_domain =
            !domain.is_empty() && domain.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'));
        Some(digits(year, 4) && digits(month, 2) && is_domain && !name.is_empty() && !name.contains(odd))
    };
    text.match_indices("iqn.").any(|(at, _)| text.get(at.saturating_add(4)..).and_then(fits) == Some(true))
}

pub(super) fn flocker(source: &Field<'_>, errors: &mut FieldErrors) {
    let (name, id) = (source.get("datasetName"), source.get("datasetUUID"));
    match (name.is_empty(), id.is_empty()) {
        (true, true) => errors.add(|| source.required("one of datasetName and datasetUUID is required")),
        (false, false) => errors.add(|| {
            source.invalid_as("resource", "datasetName and datasetUUID can not be specified simultaneously")
        }),
        _ => {}
    }
    if name.text().contains('/') {
        errors.add(|| name.invalid("must not contain '/'"));
    }
}

pub(super) fn quobyte(source: &Field<'_>, errors: &mut FieldErrors) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let (registry, tenant) = (source.get("registry"), source.get("tenant"));
    if registry.is_empty() {
        errors.add(|| registry.required(PAIRS));
    } else if tenant.text().len() >= 65 {
        errors.add(|| tenant.required("must be a UUID and may not exceed a length of 64 characters"));
    } else {
        for _ in registry.text().split(',').filter(|pair| !go::netip::is_host_and_port(pair)) {
            errors.add(|| registry.invalid(PAIRS));
        }
    }
    required(source, &["volume"], errors);
}

pub(super) fn fibre_channel(source: &Field<'_>, errors: &mut FieldErrors) {
    let (names, ids, lun) = (source.get("targetWWNs"), source.get("wwids"), source.get("lun"));
    match (names.is_empty(), ids.is_empty()) {
        (true, true) => {
            errors.add(|| names.required("must specify either targetWWNs or wwids, but not both"));
        }
        (false, false) => errors.add(|| {
            names.invalid_as(names.shown_texts(), "targetWWNs and wwids can not be specified simultaneously")
        }),
        _ => {}
    }
    if names.is_empty() {
        return;
    }
    if lun.is_set() {
        lun.in_range(0, 255, errors);
    } else {
        errors.add(|| lun.required("lun is required if targetWWNs is specified"));
    }
}

pub(super) fn flex(source: &Field<'_>, errors: &mut FieldErrors) {
    required(source, &["driver"], errors);
    for (key, option) in source.get("options").entries() {
        let domain = format!(".{}", key.split_once('/').map_or(key, |(domain, _)| domain).to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            errors.add(|| option.invalid_as(key, "kubernetes.io and k8s.io namespaces are reserved"));
        }
    }
}

pub(super) fn azure_disk(source: &Field<'_>, errors: &mut FieldErrors) {
    const MANAGED: &str =
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
    const BLOB: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    required(source, &["diskName", "diskURI"], errors);
    known_if_set(&source.get("cachingMode"), &["None", "ReadOnly", "ReadWrite"], errors);
    let (kind, uri) = (source.get("kind"), source.get("diskURI"));
    known_if_set(&kind, &["Dedicated", "Managed", "Shared"], errors);
    let (begin, form) =
        if kind.text() == "Managed" { ("/subscriptions/", MANAGED) } else { ("https://", BLOB) };
    if kind.is_set() && !uri.text().starts_with(begin) {
        errors.add(|| uri.not_supported(&[form]));
    }
}

pub(super) fn storage_os(source: &Field<'_>, errors: &mut FieldErrors) {
    required(source, &["volumeName"], errors);
    named(&source.get("volumeName"), NameRule::Label, errors);
    named(&source.get("volumeNamespace"), NameRule::Label, errors);
}

/// Drivers are named by domains, of any case.
pub(super) fn csi_driver(driver: &Field<'_>, errors: &mut FieldErrors) {
    if driver.text().is_empty() {
        return errors.add(|| driver.required(""));
    }
    if driver.text().len() > 63 {
        errors.add(|| driver.too_long(63));
    }
    for problem in NameRule::Subdomain.problems(&driver.text().to_lowercase(), false) {
        errors.add(|| driver.invalid_as(driver.text(), problem));
    }
}

/// The claim that is made for a volume of a pod.
pub(super) fn claim_template(template: &Field<'_>, errors: &mut FieldErrors) {
    template_metadata::validate(&template.get("metadata"), errors);
    claim::specification(&template.get("spec"), false, errors);
}
