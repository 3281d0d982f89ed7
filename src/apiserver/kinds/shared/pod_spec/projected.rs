//! Validates projected volumes, which combine several sources.

use std::collections::HashSet;

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::NameRule;

use super::files::{key_to_path, mode};
use super::{Options, env, local_path, source_kinds};
use crate::kinds::field::Field;
use crate::kinds::shared::label_selector::{self, LabelValues};
use crate::kinds::shared::{internal, signer_name};

const SAME_PATH: &str = "conflicting duplicate paths";
const TEN_MINUTES: i64 = 600;
const LONGEST_TOKEN: i64 = 1 << 32;

/// Validates a projected volume.
pub(super) fn validate(volume: &Field<'_>, options: &Options<'_>, errors: &mut FieldErrors) {
    mode(&volume.get("defaultMode"), errors);
    let mut paths = HashSet::new();
    for source in volume.get("sources").items() {
        let mut count: usize = 0;
        for name in [
            "secret",
            "configMap",
            "downwardAPI",
            "serviceAccountToken",
            "clusterTrustBundle",
            "podCertificate",
        ] {
            let given = source.get(name);
            if !given.is_set() {
                continue;
            }
            count = count.saturating_add(1);
            match name {
                "secret" | "configMap" => keys(volume, &given, &mut paths, errors),
                "downwardAPI" => downward(volume, &given, &mut paths, errors),
                "serviceAccountToken" => token(volume, &given, options, errors),
                "clusterTrustBundle" => trust_bundle(volume, &given, &mut paths, errors),
                _ => certificate(volume, &given, &mut paths, errors),
            }
        }
        if count > 1 {
            errors.add(|| source.forbidden("may not specify more than 1 volume type per source"));
        }
    }
}

fn keys<'o>(volume: &Field<'_>, source: &Field<'o>, paths: &mut HashSet<&'o str>, errors: &mut FieldErrors) {
    source_kinds::required(source, &["name"], errors);
    for item in source.get("items").items() {
        key_to_path(&item, errors);
        let path = item.get("path").text();
        if !path.is_empty() && !paths.insert(path) {
            errors.add(|| volume.invalid_as(source.get("name").text(), SAME_PATH));
        }
    }
}

fn downward<'o>(
    volume: &Field<'_>,
    source: &Field<'o>,
    paths: &mut HashSet<&'o str>,
    errors: &mut FieldErrors,
) {
    for file in source.get("items").items() {
        // The error's path is that of the source.
        downward_file(&source.with(file.value()), errors);
        let path = file.get("path").text();
        if !path.is_empty() && !paths.insert(path) {
            errors.add(|| volume.invalid_as(path, SAME_PATH));
        }
    }
}

/// Validates a file with data of the pod itself.
pub(super) fn downward_file(file: &Field<'_>, errors: &mut FieldErrors) {
    source_kinds::required(file, &["path"], errors);
    local_path(&file.get("path"), errors);
    let (field, resource) = (file.get("fieldRef"), file.get("resourceFieldRef"));
    if field.is_set() {
        env::field_reference(&field, &env::IN_FILES, errors);
        if resource.is_set() {
            let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.add(|| file.invalid_as("resource", why));
        }
    } else if resource.is_set() {
        env::resource_reference(&resource, true, errors);
    } else {
        errors.add(|| file.required("one of fieldRef and resourceFieldRef is required"));
    }
    mode(&file.get("mode"), errors);
}

fn token(volume: &Field<'_>, source: &Field<'_>, options: &Options<'_>, errors: &mut FieldErrors) {
    let expiration = source.get("expirationSeconds");
    let seconds = expiration.integer().unwrap_or(0);
    if seconds < TEN_MINUTES {
        errors.add(|| expiration.invalid_as(seconds, "may not specify a duration less than 10 minutes"));
    }
    if seconds > LONGEST_TOKEN {
        errors.add(|| expiration.invalid_as(seconds, "may not specify a duration larger than 2^32 seconds"));
    }
    let path = volume.get("path").with(source.get("path").value());
    if path.text().is_empty() {
        errors.add(|| path.required(""));
    } else if !options.any_token_path {
        local_path(&path, errors);
    }
}

/// Whether a token is projected to a path outside of its volume.
pub(super) fn has_odd_token_path(spec: &Field<'_>) -> bool {
    let sources =
        spec.get("volumes").items().flat_map(|volume| volume.get("projected").get("sources").items());
    let mut tokens = sources.map(|source| source.get("serviceAccountToken").get("path"));
    tokens.any(|path| {
        let mut found = FieldErrors::default();
        local_path(&path, &mut found);
        !found.is_empty()
    })
}

fn trust_bundle<'o>(
    volume: &Field<'_>,
    source: &Field<'o>,
    paths: &mut HashSet<&'o str>,
    errors: &mut FieldErrors,
) {
    let [name, signer, selector, path] =
        ["name", "signerName", "labelSelector", "path"].map(|field| source.get(field));
    match (name.is_set(), signer.is_set()) {
        (true, true) => errors.add(|| {
            let shown = internal::shown(source, "io.k8s.api.core.v1.ClusterTrustBundleProjection");
            source.invalid_as(shown, "only one of name and signerName may be used")
        }),
        (true, false) => {
            if name.text().is_empty() {
                errors.add(|| name.required("must be a valid object name"));
            }
            for problem in bundle_name_problems(name.text()) {
                errors.add(|| name.invalid(format!("not a valid clustertrustbundlename: {problem}")));
            }
            if selector.is_set() {
                errors.add(|| selector.invalid("labelSelector must be unset if name is specified"));
            }
        }
        (false, true) => {
            if signer.text().is_empty() {
                errors.add(|| signer.required("must be a valid signer name"));
            }
            signer_name::validate(&signer, errors);
            label_selector::validate(&selector, LabelValues::Checked, errors);
        }
        (false, false) => errors.add(|| source.required("either name or signerName must be specified")),
    }
    if path.text().is_empty() {
        errors.add(|| path.required(""));
    }
    local_path(&path, errors);
    if !paths.insert(path.text()) {
        errors.add(|| volume.invalid_as(path.text(), SAME_PATH));
    }
}

/// The name of a bundle for a signer begins with the signer's name, with a colon in place of the slash.
fn bundle_name_problems(name: &str) -> Vec<String> {
    NameRule::Subdomain.problems(name.rsplit_once(':').map_or(name, |(_, own)| own), false)
}

const KEY_TYPES: [&str; 6] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
const ONE_HOUR: i64 = 3600;
const LONGEST_CERTIFICATE: i64 = 91 * 24 * ONE_HOUR;

fn certificate<'o>(
    volume: &Field<'_>,
    source: &Field<'o>,
    paths: &mut HashSet<&'o str>,
    errors: &mut FieldErrors,
) {
    signer_name::validate(&source.get("signerName"), errors);
    let (key, seconds) = (source.get("keyType"), source.get("maxExpirationSeconds"));
    if !KEY_TYPES.contains(&key.text()) {
        errors.add(|| key.not_supported(&KEY_TYPES));
    }
    seconds.in_range(ONE_HOUR, LONGEST_CERTIFICATE, errors);
    let places = ["credentialBundlePath", "keyPath", "certificateChainPath"].map(|name| source.get(name));
    if places.iter().all(Field::is_empty) {
        let why = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        errors.add(|| source.required(why));
    }
    for path in places.into_iter().filter(|path| !path.is_empty()) {
        local_path(&path, errors);
        if !paths.insert(path.text()) {
            errors.add(|| volume.invalid_as(path.text(), SAME_PATH));
        }
    }
}
