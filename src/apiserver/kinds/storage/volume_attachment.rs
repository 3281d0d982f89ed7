//! VolumeAttachments: which volume is wanted on which node. Read from pkg/apis/storage/validation and
//! pkg/registry/storage/volumeattachment of Kubernetes 1.36.

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use crate::kinds::core::volume_spec;
use crate::kinds::field::Field;
use crate::kinds::shared::inside;
use crate::kinds::shared::texts::{driver_name, subdomain};
use crate::kinds::{Habit, Strategy};

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "VolumeAttachment",
    habits: &[
        Habit::NeedsVersion,
        Habit::AnswersDeleted,
        Habit::ChangeOnce,
        Habit::ObjectAgain,
        Habit::StatusAlike,
    ],
    validate: Some(validate),
    validate_update: Some(validate_update),
    validate_status: Some(validate_update),
    ..Strategy::PLAIN
};

/// Keys and values of what was attached together, in bytes.
const METADATA_BYTES: i64 = 256 << 10;
const MESSAGE_BYTES: usize = 1024;

fn validate(attachment: &Value, errors: &mut FieldErrors) {
    let root = Field::root(attachment);
    let (spec, status) = (root.get("spec"), root.get("status"));
    driver_name(&spec.get("attacher"), errors);
    source(&spec.get("source"), errors);
    subdomain(&spec.get("nodeName"), errors);
    let metadata = status.get("attachmentMetadata");
    let bytes =
        metadata.entries().map(|(key, value)| key.len().saturating_add(value.text().len())).sum::<usize>();
    if i64::try_from(bytes).is_ok_and(|bytes| bytes > METADATA_BYTES) {
        errors.add(|| metadata.too_long(METADATA_BYTES));
    }
    for error in [status.get("attachError"), status.get("detachError")] {
        let (message, code) = (error.get("message"), error.get("errorCode"));
        if message.text().len() > MESSAGE_BYTES {
            // The limit that is told is that of the metadata.
            errors.add(|| message.too_long(METADATA_BYTES));
        }
        code.in_range(0, i64::from(i32::MAX), errors);
    }
    let name = spec.get("source").get("persistentVolumeName");
    if name.is_set() {
        subdomain(&name, errors);
    }
}

fn source(source: &Field<'_>, errors: &mut FieldErrors) {
    const ONE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let (inline, name) = (source.get("inlineVolumeSpec"), source.get("persistentVolumeName"));
    match (inline.is_set(), name.is_set()) {
        (false, false) => errors.add(|| source.required(ONE)),
        (true, true) => errors.add(|| source.forbidden(ONE)),
        (true, false) => volume_spec::inline(&inline, errors),
        (false, true) if name.text().is_empty() => {
            errors.add(|| name.required("must specify non empty persistentVolumeName"));
        }
        (false, true) => {}
    }
}

fn validate_update(attachment: &Value, old: &Value, errors: &mut FieldErrors) {
    validate(attachment, errors);
    let spec = Field::root(attachment).get("spec");
    let name = "io.k8s.api.storage.v1.VolumeAttachmentSpec";
    if !inside::alike(name, spec.value(), Field::root(old).get("spec").value()) {
        let sent = spec.as_sent();
        let empty = serde_json::json!({});
        let shown = inside::shown(name, if sent.is_null() { &empty } else { &sent });
        errors.add(|| spec.invalid_as(inside::told(&shown), "field is immutable"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sources_and_failures_are_checked() {
        let attachment = json!({
            "spec": {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "p", "inlineVolumeSpec": {}}},
            "status": {"attachError": {"message": "x".repeat(1025), "errorCode": -1}},
        });
        let mut errors = FieldErrors::default();
        validate(&attachment, &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        assert_eq!(
            texts,
            [
                "spec.source: Forbidden: must specify exactly one of inlineVolumeSpec and persistentVolumeName",
                "status.attachError.message: Too long: may not be more than 262144 bytes",
                "status.attachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive",
            ]
        );
    }
}
