//! Validates keys of ConfigMaps and Secrets (staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go, `IsConfigMapKey`).

/// Returns the problems with a key; empty if it is valid.
pub(crate) fn problems(key: &str) -> Vec<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let mut problems = Vec::new();
    if key.len() > 253 {
        problems.push("must be no more than 253 characters".to_owned());
    }
    if key.is_empty() || !key.bytes().all(is_plain) {
        problems.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
             'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
                .to_owned(),
        );
    }
    // As file names these would refer outside the mounted directory.
    let reserved = match key {
        "." => "must not be '.'",
        ".." => "must not be '..'",
        _ if key.starts_with("..") => "must not start with '..'",
        _ => return problems,
    };
    problems.push(reserved.to_owned());
    problems
}
