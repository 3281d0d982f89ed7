//! Loads the key with which the embedded API server signs service account tokens from the state folder, or creates it
//! there, so that tokens survive a restart.

use std::path::Path;

use admit_apiserver::TokenKey;

use super::process::Fault;
use crate::admission::tls::write_private;
use crate::outside;

const FILE: &str = "service-account.key";

/// Reads the key in `state_dir`, or creates it.
///
/// # Errors
/// When the file cannot be read or written, or is not a key.
pub(super) fn open(state_dir: &Path) -> Result<TokenKey, Fault> {
    let path = state_dir.join(FILE);
    match outside::text(&path, outside::MAX_PEM) {
        Ok(text) => TokenKey::from_pem(&text).map_err(|error| {
            let path = path.display();
            Fault::usage(format!(
                "`{path}` holds no key ({error}); remove it, and a new one is made: tokens end with the old"
            ))
        }),
        Err(error) if error.is_missing() => {
            let key = TokenKey::generate().map_err(Fault::internal)?;
            write_private(&path, &key.to_pem()).map_err(Fault::usage)?;
            Ok(key)
        }
        Err(error) => Err(Fault::usage(format!("`{}` cannot be read: {error}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_key_is_made_once_and_for_its_owner_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let made = open(folder.path()).expect("a new key");
        let again = open(folder.path()).expect("the same key");
        assert_eq!(made.to_pem(), again.to_pem());
        let path = folder.path().join(FILE);
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::write(&path, "nonsense").expect("a writable file");
        assert!(open(folder.path()).is_err());
    }
}
