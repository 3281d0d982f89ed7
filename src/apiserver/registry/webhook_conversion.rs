//! Converts custom resources between their stored version and a request's version, where a webhook does the
//! conversion.
//!
//! Reading: defaults of the stored version are applied, the webhook converts, and fields that the requested version
//! does not have are pruned. Writing: the webhook converts, and fields that the stored version does not have are
//! pruned. All other conversions are in [`storage_version`] and need no webhook.

use std::sync::Arc;

use serde_json::Value;

use super::{Registry, autoscalers, kinds, storage_version};
use crate::call::Call;
use crate::conversion::{Failed, Webhook, version_of};
use crate::object;
use crate::status::Refusal;

impl Registry {
    /// Converts the stored object to what the caller sees.
    ///
    /// # Errors
    /// If it cannot be converted.
    pub(super) async fn shown(&self, call: &Call, stored: Arc<Value>) -> Result<Arc<Value>, Refusal> {
        match call.converter() {
            Some(webhook) if version_of(&stored) != call.info.api_version() => {
                let mut seen = self.converted(call, webhook, vec![stored]).await?;
                seen.pop().ok_or_else(|| Refusal::internal("nothing was converted"))
            }
            _ => Ok(storage_version::shown(call, stored)?),
        }
    }

    /// Converts several stored objects, in their order; the webhook gets those that it converts together.
    ///
    /// # Errors
    /// If one of them cannot be converted.
    pub(super) async fn all_shown(
        &self,
        call: &Call,
        stored: Vec<Arc<Value>>,
    ) -> Result<Vec<Arc<Value>>, Refusal> {
        match call.converter() {
            Some(webhook) => self.converted(call, webhook, stored).await,
            None => stored.into_iter().map(|stored| Ok(storage_version::shown(call, stored)?)).collect(),
        }
    }

    async fn converted(
        &self,
        call: &Call,
        webhook: &Webhook,
        stored: Vec<Arc<Value>>,
    ) -> Result<Vec<Arc<Value>>, Refusal> {
        let api_version = call.info.api_version();
        let other = |stored: &Arc<Value>| version_of(stored) != api_version;
        let mut questions: Vec<Value> = Vec::new();
        for stored in stored.iter().filter(|stored| other(stored)) {
            let mut object = object::copied(stored);
            webhook.default(&mut object);
            questions.push(object);
        }
        if questions.is_empty() {
            return stored.into_iter().map(|stored| Ok(storage_version::shown(call, stored)?)).collect();
        }
        let mut answers = webhook.convert(self, &questions, &api_version).await?.into_iter();
        drop(questions);
        let seen = stored.into_iter().map(|stored| {
            if !other(&stored) {
                return Ok(storage_version::shown(call, stored)?);
            }
            let answer = answers.next().ok_or_else(|| Refusal::internal("too little was converted"))?;
            coerced(call, answer).map(Arc::new)
        });
        seen.collect()
    }

    /// Converts the caller's object to its stored form.
    ///
    /// # Errors
    /// If it cannot be converted.
    pub(super) async fn stored_form(&self, call: &Call, object: Value) -> Result<Value, Refusal> {
        let object = match call.converter() {
            Some(webhook) if call.info.version != call.info.storage_version => {
                let api_version = call.info.stored_as();
                let mut converted = webhook.convert(self, &[object], &api_version).await?;
                converted.pop().ok_or_else(|| Refusal::internal("nothing was converted"))?
            }
            _ => object,
        };
        Ok(storage_version::incoming(call, object)?)
    }

    /// Returns the object as it would be read after being stored: a dry run converts it the same way, with the defaults of
    /// reading the store. Its members are unordered.
    ///
    /// # Errors
    /// If it cannot be converted.
    pub(super) async fn as_if_stored(&self, call: &Call, mut object: Value) -> Result<Value, Refusal> {
        if call.converter().is_some() {
            self.stored_form(call, object.clone()).await?;
        } else if let Some(custom) = &call.custom {
            custom.to_stored(&mut object, &call.info.storage_version)?;
            object::set_field(&mut object, "apiVersion", Some(call.info.stored_as().into()));
            custom.read_stored(&mut object)?;
        } else if autoscalers::is_older(&call.info) {
            // It gets the defaults of the stored version.
            let mut stored = autoscalers::to_v2(&object);
            kinds::default_as("v2", &call.info, &mut stored);
            object = autoscalers::to_v1(&stored);
        }
        Ok(object)
    }
}

/// Prunes a webhook's result to the version of the call.
fn coerced(call: &Call, mut object: Value) -> Result<Value, Refusal> {
    if let Some(custom) = &call.custom {
        custom.prune(&mut object);
        custom.read_metadata(&mut object).map_err(|error| Failed(error.to_string()))?;
    }
    Ok(storage_version::arranged(&call.info, object))
}
