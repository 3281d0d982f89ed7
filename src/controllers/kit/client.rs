//! How API servers are reached.

use http::HeaderValue;
use kube::Config;
use secrecy::ExposeSecret as _;
use thiserror::Error;

/// A token that no request can carry; clients end the process over one.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("its token holds what no header may, such as a line break")]
pub struct BadToken;

/// Whether requests can carry the token.
///
/// # Errors
/// When it holds what no header may.
fn can_be_sent(token: &str) -> Result<(), BadToken> {
    HeaderValue::from_str(token).map(drop).map_err(|_| BadToken)
}

/// `config` without a proxy that the environment names. Clients take one from there for each kubeconfig and then refuse to use
/// it; what the environment says is for uploads. A proxy that a kubeconfig names itself stays, and is refused by name.
///
/// # Errors
/// When no request can carry its token.
pub fn straight(mut config: Config) -> Result<Config, BadToken> {
    if let Some(token) = &config.auth_info.token {
        can_be_sent(token.expose_secret())?;
    }
    let named = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let environment = named("HTTPS_PROXY").or_else(|| named("https_proxy")).and_then(|url| url.parse().ok());
    if config.proxy_url.is_some() && config.proxy_url == environment {
        config.proxy_url = None;
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_no_request_can_carry_is_refused_and_not_shown() {
        let with = |token: &str| {
            let mut config = Config::new("https://127.0.0.1:6443".parse().unwrap());
            config.auth_info.token = Some(token.to_owned().into());
            straight(config).map(drop)
        };
        assert_eq!(with("abc.DEF-4_2"), Ok(()));
        for token in ["CANARY\n", "CAN\nARY", "CAN\0ARY"] {
            let refused = with(token).unwrap_err().to_string();
            assert!(refused.contains("line break") && !refused.contains("CAN"), "{refused}");
        }
    }
}
