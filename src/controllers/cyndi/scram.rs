//! Computes the SCRAM-SHA-256 verifier that PostgreSQL stores for a password (RFC 5802). A role's password is set with
//! that, because the password itself would be part of the statement, and so of the server's logs. Pure but for the salt.

use std::num::NonZeroU32;

use admit_apimachinery::go;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{digest, hmac, pbkdf2};

/// The defaults of PostgreSQL.
const SALT: usize = 16;
const ITERATIONS: NonZeroU32 = NonZeroU32::MIN.saturating_add(4095);

#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq)]
pub enum ScramError {
    /// Other characters must be normalised before hashing, which servers do differently.
    #[error("only a password of printable ASCII characters can be set")]
    NotAscii,
    #[error("there is no randomness for a salt")]
    NoSalt,
}

/// Returns the verifier for `ALTER ROLE … PASSWORD` instead of `password`. It contains no quotes.
///
/// # Errors
/// [`ScramError`], which contains nothing of the password.
pub fn verifier(password: &str) -> Result<String, ScramError> {
    let mut salt = [0; SALT];
    SystemRandom::new().fill(&mut salt).map_err(|_| ScramError::NoSalt)?;
    with_salt(password, &salt)
}

fn with_salt(password: &str, salt: &[u8]) -> Result<String, ScramError> {
    if !password.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Err(ScramError::NotAscii);
    }
    let mut salted = [0; digest::SHA256_OUTPUT_LEN];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ITERATIONS, salt, password.as_bytes(), &mut salted);
    let salted = hmac::Key::new(hmac::HMAC_SHA256, &salted);
    let client = hmac::sign(&salted, b"Client Key");
    let stored = digest::digest(&digest::SHA256, client.as_ref());
    let server = hmac::sign(&salted, b"Server Key");
    let (salt, stored, server) =
        (go::base64::encode(salt), go::base64::encode(stored), go::base64::encode(server));
    Ok(format!("SCRAM-SHA-256${ITERATIONS}:{salt}${stored}:{server}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677: user `user`, password `pencil`.
    #[test]
    fn the_example_of_the_standard() {
        let salt = go::json::bytes("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let expected = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
        assert_eq!(with_salt("pencil", &salt).unwrap(), expected);
        assert_ne!(verifier("pencil"), verifier("pencil"));
    }

    #[test]
    fn what_is_normalised_otherwise_is_refused() {
        for password in ["pässword", "a\nb", "a\u{7f}"] {
            assert_eq!(verifier(password), Err(ScramError::NotAscii));
        }
        assert!(verifier("it's \"fine\" $%").is_ok());
    }
}
