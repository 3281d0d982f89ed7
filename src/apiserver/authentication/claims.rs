//! Issues service account tokens, and validates their claims.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use uuid::Uuid;

use super::error::TokenKeyError;
use super::key::{TokenKey, TokenPublicKey};
use crate::identity::Identity;

const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Issues and verifies service account tokens.
#[derive(Debug)]
pub(crate) struct Issuer {
    pub(crate) key: TokenKey,
    /// Further keys whose tokens are accepted.
    pub(crate) trusted: Vec<TokenPublicKey>,
    /// The issuer URLs that are accepted. Tokens are issued under the first.
    pub(crate) names: Vec<String>,
    /// The audiences of this server, which are also those of tokens that request none.
    pub(crate) audiences: Vec<String>,
}

/// The time from which, and the seconds for which, a token is valid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifetime {
    pub(crate) from: Timestamp,
    pub(crate) seconds: i64,
}

impl Lifetime {
    pub(crate) fn end(&self) -> Timestamp {
        self.from.saturating_add(SignedDuration::from_secs(self.seconds)).unwrap_or(Timestamp::MAX)
    }
}

/// An object by name and UID: the service account, or another object that a token is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    /// `serviceaccount`, `pod`, `secret` or `node`.
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// The claims of a token that this server issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Issued {
    pub(crate) namespace: String,
    /// The bound objects, the service account first.
    pub(crate) bindings: Vec<Binding>,
    pub(crate) audiences: Vec<String>,
    id: String,
}

impl Issuer {
    /// Returns the issuer of new tokens.
    pub(crate) fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    /// Returns whether one of these audiences is this server's.
    pub(crate) fn is_meant(&self, audiences: &[String]) -> bool {
        audiences.iter().any(|audience| self.audiences.contains(audience))
    }

    /// Returns all keys that verify tokens, each once.
    fn keys(&self) -> Vec<TokenPublicKey> {
        let mut seen = BTreeSet::new();
        let all = std::iter::once(self.key.public()).chain(self.trusted.iter().cloned());
        all.filter(|key| seen.insert(key.0.id())).collect()
    }

    /// # Errors
    /// If the system has no random numbers.
    pub(crate) fn issue(
        &self,
        namespace: &str,
        bindings: &[Binding],
        audiences: &[String],
        life: Lifetime,
    ) -> Result<String, TokenKeyError> {
        let mut objects = Map::new();
        objects.insert("namespace".to_owned(), namespace.into());
        for Binding { kind, name, uid } in bindings {
            objects.insert((*kind).to_owned(), json!({"name": name, "uid": uid}));
        }
        let account = bindings.first().map_or("", |account| account.name.as_str());
        let from = life.from.as_second();
        self.key.sign(&json!({
            "aud": audiences, "exp": life.end().as_second(), "iat": from, "iss": self.name(),
            "jti": Uuid::new_v4().to_string(), "kubernetes.io": objects, "nbf": from,
            "sub": username(namespace, account)
        }))
    }

    /// Returns the claims of `token` if this server issued it and it is valid at `now`. The caller checks whether the
    /// objects that it is bound to still exist.
    pub(crate) fn read(&self, token: &str, now: Timestamp) -> Option<Issued> {
        let claims = self.keys().iter().find_map(|key| key.0.verified(token))?;
        let number = |name: &str| claims.get(name).and_then(Value::as_i64);
        let now = now.as_second();
        if !self.names.iter().any(|name| claims["iss"] == **name)
            || number("exp")? <= now
            || number("nbf")? > now
        {
            return None;
        }
        let objects = claims.get("kubernetes.io")?;
        let text = |value: &Value, name: &str| Some(value.get(name)?.as_str()?.to_owned());
        let kinds = ["serviceaccount", "pod", "secret", "node"].into_iter();
        let bindings = kinds.filter_map(|kind| {
            let object = objects.get(kind)?;
            Some(Binding { kind, name: text(object, "name")?, uid: text(object, "uid")? })
        });
        let audiences = claims.get("aud")?.as_array()?.iter().filter_map(Value::as_str).map(str::to_owned);
        Some(Issued {
            namespace: text(objects, "namespace")?,
            bindings: bindings.collect(),
            audiences: audiences.collect(),
            id: text(&claims, "jti")?,
        })
    }

    /// Returns the document of `/openid/v1/jwks`.
    pub(crate) fn key_set(&self) -> Value {
        let keys: Vec<Value> = self.keys().iter().map(|key| key.0.to_value()).collect();
        json!({ "keys": keys })
    }

    /// Returns the document of `/.well-known/openid-configuration` for a request to `host`.
    pub(crate) fn configuration(&self, host: &str) -> Value {
        let algorithms: BTreeSet<_> = self.keys().iter().map(|key| key.0.algorithm()).collect();
        json!({
            "issuer": self.name(), "jwks_uri": format!("https://{host}/openid/v1/jwks"),
            "response_types_supported": ["id_token"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": algorithms
        })
    }
}

impl Issued {
    pub(crate) fn identity(&self) -> Identity {
        let account = self.bindings.first();
        let name = account.map_or("", |account| account.name.as_str());
        let mut identity = Identity::new(username(&self.namespace, name), groups(&self.namespace));
        identity.uid = account.map(|account| account.uid.clone()).unwrap_or_default();
        identity.extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={}", self.id)]);
        for Binding { kind, name, uid } in
            self.bindings.iter().filter(|bound| matches!(bound.kind, "pod" | "node"))
        {
            let key = |member: &str| format!("authentication.kubernetes.io/{kind}-{member}");
            identity.extra.insert(key("name"), vec![name.clone()]);
            identity.extra.insert(key("uid"), vec![uid.clone()]);
        }
        identity
    }
}

fn username(namespace: &str, account: &str) -> String {
    format!("system:serviceaccount:{namespace}:{account}")
}

fn groups(namespace: &str) -> [String; 2] {
    ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authentication::test_keys::{ED25519, FORMS};

    fn issuer() -> Issuer {
        named("https://here", TokenKey::generate().expect("a key"))
    }

    fn named(name: &str, key: TokenKey) -> Issuer {
        Issuer { key, trusted: Vec::new(), names: vec![name.to_owned()], audiences: vec![name.to_owned()] }
    }

    #[test]
    fn a_token_is_believed_by_its_issuer_and_for_its_time() {
        let issuer = issuer();
        let account = Binding { kind: "serviceaccount", name: "joe".to_owned(), uid: "u".to_owned() };
        let life = Lifetime { from: Timestamp::UNIX_EPOCH, seconds: 600 };
        let audiences = ["https://here".to_owned()];
        let token = issuer.issue("ns", std::slice::from_ref(&account), &audiences, life).expect("a token");
        let at = |second| Timestamp::from_second(second).expect("a time");
        let read = issuer.read(&token, at(599)).expect("a good token");
        assert_eq!((read.bindings.clone(), read.audiences.clone()), (vec![account], audiences.to_vec()));
        let identity = read.identity();
        assert_eq!(
            (identity.username.as_str(), identity.uid.as_str()),
            ("system:serviceaccount:ns:joe", "u")
        );
        assert_eq!(
            identity.groups,
            ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]
        );
        assert_eq!(issuer.read(&token, at(600)), None);
        assert_eq!(self::issuer().read(&token, at(1)), None, "another key");
        let kept = TokenKey::from_pem(&issuer.key.to_pem()).expect("the same key");
        let mut elsewhere = named("https://there", kept);
        assert_eq!(elsewhere.read(&token, at(1)), None, "another issuer");
        elsewhere.names.push("https://here".to_owned());
        assert!(elsewhere.read(&token, at(1)).is_some(), "one of its names");
        let forged = token.replacen('.', ".e30", 1);
        assert_eq!(issuer.read(&forged, at(1)), None);
    }

    #[test]
    fn keys_are_read_in_all_their_forms() {
        let at = Timestamp::UNIX_EPOCH;
        let account = Binding { kind: "serviceaccount", name: "joe".to_owned(), uid: "u".to_owned() };
        for (form, private, public) in FORMS {
            let key = TokenKey::from_pem(private).expect(form);
            assert_eq!(key.to_pem().trim(), private.trim(), "{form}");
            let signing = named("https://here", key);
            let life = Lifetime { from: at, seconds: 600 };
            let bound = std::slice::from_ref(&account);
            let token = signing.issue("ns", bound, &signing.audiences, life).expect("a token");
            for text in [private, public] {
                let trusted = TokenPublicKey::all_from_pem(text).expect(form);
                let other = Issuer { trusted, ..issuer() };
                assert!(other.read(&token, at).is_some(), "{form}: {text}");
                assert_eq!(other.key_set()["keys"].as_array().map(Vec::len), Some(2), "{form}");
            }
            assert_eq!(issuer().read(&token, at), None, "{form}: by another key");
        }
    }

    #[test]
    fn what_is_no_key_is_told() {
        let why = |text: &str| TokenKey::from_pem(text).map(drop).expect_err("no key").to_string();
        assert!(why("none").starts_with("data does not contain a valid RSA or ECDSA private key"));
        assert!(why(ED25519).contains("is not supported; give an RSA key"), "{}", why(ED25519));
        let public = TokenPublicKey::all_from_pem("").map(drop).expect_err("none").to_string();
        assert!(public.starts_with("data does not contain any valid RSA or ECDSA public keys"));
    }
}
