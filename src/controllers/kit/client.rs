//! Prepares kubeconfigs for clients of API servers: rejects credentials that cannot be sent, and removes
//! proxies from the environment.

use http::HeaderValue;
use kube::Config;
use secrecy::ExposeSecret as _;
use thiserror::Error;

/// Credentials that cannot be used; messages do not contain them.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum BadLogin {
    /// It cannot be sent in a header; clients would panic.
    #[error("its token holds what no header may, such as a line break")]
    Token,
    /// Clients would send requests without it, and log it with each URL.
    #[error("the address of its server holds a login, which no request would carry: it belongs to the user")]
    Address,
}

/// Checks that requests can contain the token.
///
/// # Errors
/// When it contains characters that are invalid in a header.
fn can_be_sent(token: &str) -> Result<(), BadLogin> {
    HeaderValue::from_str(token).map(drop).map_err(|_| BadLogin::Token)
}

/// Removes a proxy of the environment from `config`. Clients would take it as one of the kubeconfig, and then
/// refuse to use it; the environment's proxies are for uploads. A proxy in the kubeconfig itself stays, and the client
/// reports it as an error.
///
/// # Errors
/// When its credentials cannot be sent.
pub fn straight(mut config: Config) -> Result<Config, BadLogin> {
    if config.cluster_url.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(BadLogin::Address);
    }
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
    fn an_address_with_a_login_is_refused_and_not_shown() {
        let with = |url: &str| straight(Config::new(url.parse().unwrap())).map(drop);
        assert_eq!(with("https://127.0.0.1:6443/@path"), Ok(()));
        for url in ["https://robot:CANARY@127.0.0.1:6443", "https://CANARY@127.0.0.1:6443"] {
            let refused = with(url).unwrap_err().to_string();
            assert!(refused.contains("belongs to the user") && !refused.contains("CANARY"), "{refused}");
        }
    }

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
