//! Reads the keys of service account tokens from the files that flags name.

use std::path::Path;

use admit_apiserver::{TokenKey, TokenPublicKey};

use super::flags::Given;
use crate::cli::process::Fault;
use crate::outside;

/// Reads the key that signs tokens, if a flag names one.
///
/// # Errors
/// When the file cannot be read, or has no usable key.
pub(super) fn signing(given: &Given) -> Result<Option<TokenKey>, Fault> {
    let flag = "service-account-signing-key-file";
    let Some(path) = given.path(flag) else { return Ok(None) };
    TokenKey::from_pem(&text(flag, &path)?).map(Some).map_err(|error| wrong(flag, &path, &error))
}

/// Reads the keys that verify tokens; the key of the serving certificate if no flag names any.
///
/// # Errors
/// As [`signing`].
pub(super) fn trusted(given: &Given, serving_key: &str) -> Result<Vec<TokenPublicKey>, Fault> {
    let flag = "service-account-key-file";
    let files = given.all(flag);
    if files.is_empty() {
        return TokenPublicKey::all_from_pem(serving_key).map_err(Fault::usage);
    }
    let mut keys = Vec::new();
    for file in files {
        let path = Path::new(file);
        let found = TokenPublicKey::all_from_pem(&text(flag, path)?);
        keys.extend(found.map_err(|error| wrong(flag, path, &error))?);
    }
    Ok(keys)
}

pub(super) fn text(flag: &str, path: &Path) -> Result<String, Fault> {
    outside::text(path, outside::MAX_PEM).map_err(|error| wrong(flag, path, &error))
}

pub(super) fn wrong(flag: &str, path: &Path, error: &dyn std::fmt::Display) -> Fault {
    Fault::usage(format!("--{flag}: `{}`: {error}", path.display()))
}
