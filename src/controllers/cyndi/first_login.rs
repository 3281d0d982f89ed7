//! Sets an application's database password at its first login: a database is created with a well-known initial
//! password, and the Secret has another.
//!
//! Where the ConfigMap names a second Secret with that initial password (`db.initialPasswordSecret`), and the
//! database refuses the one of the application's Secret (28P01), the role is given the latter. This happens only if
//! it is configured, and no password is built in.

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt};
use tracing::warn;

use super::config::Config;
use super::crd::CyndiPipeline;
use super::database::Credentials;
use super::fetch::configuration;
use super::scram;
use super::{Context, Error};
use crate::controllers::kit::events::Notice;
use crate::controllers::kit::key::Key;

impl Context {
    /// Sets the password of the application's Secret, logged in with the initial one; false if none is configured.
    pub(super) async fn set_password(&self, object: &CyndiPipeline) -> Result<bool, Error> {
        let config = configuration(self, object).await?;
        let Some(initial) = &config.initial_secret else { return Ok(false) };
        let wanted = self.credentials(object, &object.spec.db_secret()).await?;
        let first = self.initial(object, &wanted, initial).await?;
        self.alter(&config, &first, &wanted).await?;
        let (role, secret) = (&wanted.user, object.spec.db_secret());
        warn!(pipeline = object.name_any(), role, secret, "a role was given the password of its Secret");
        let note = format!(
            "The role of Secret {secret} was given its password, by the initial one of Secret {initial}"
        );
        let notice = Notice { warning: false, reason: "PasswordSet", action: "SetPassword", note };
        self.events.publish(object, notice).await;
        Ok(true)
    }

    /// Returns the same login with the initial password.
    async fn initial(
        &self,
        object: &CyndiPipeline,
        wanted: &Credentials,
        name: &str,
    ) -> Result<Credentials, Error> {
        let namespace = object.namespace().unwrap_or_default();
        self.uses.note(Key::of(object), &namespace, name);
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &namespace);
        let secret = secrets.get_opt(name).await?.ok_or_else(|| Error::NoSecret(name.to_owned()))?;
        Ok(wanted.with_password_of(&secret)?)
    }

    async fn alter(&self, config: &Config, first: &Credentials, wanted: &Credentials) -> Result<(), Error> {
        let verifier = scram::verifier(&wanted.password)?;
        let mut database = self.pools.open(first, config).await.map_err(Error::First)?;
        let altered = database.set_password(&wanted.user, &verifier).await.map_err(Error::First);
        drop(database);
        // The initial password is not used any more.
        self.pools.forget(first);
        altered
    }
}
