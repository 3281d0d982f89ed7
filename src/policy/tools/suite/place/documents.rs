//! Compiles the documents that such cases refer to.

use admit_apimachinery::field_error::FieldError;
use serde_json::Value;
use thiserror::Error;

use crate::devices::{DeviceFeatures, Devices, NoSelection};
use crate::report::recording::Expression;
use crate::server_config::{Authenticators, Authorizers};
use crate::webhook::Webhooks;

/// What servers read beside policies: configurations, webhooks, devices. [`PlaceCase`](super::PlaceCase) has an example.
#[derive(Debug)]
pub struct PlaceDocuments {
    pub(super) authenticators: Option<Authenticators>,
    pub(super) authorizers: Option<Authorizers>,
    pub(super) webhooks: Webhooks,
    pub(super) devices: Devices,
}

/// Why documents cannot be used by the cases.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PlaceError {
    #[error("there are several documents of kind {0}, and a server reads one")]
    Several(&'static str),
    /// A line for each.
    #[error("{}", lines(.0))]
    Invalid(Vec<FieldError>),
    #[error(transparent)]
    Devices(#[from] NoSelection),
}

fn lines(errors: &[FieldError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl PlaceDocuments {
    /// Reads the documents among others.
    ///
    /// # Errors
    /// What is wrong with the first that cannot be used, and where there are two configurations of one kind.
    pub fn read<'d>(documents: impl IntoIterator<Item = &'d Value>) -> Result<Self, PlaceError> {
        let documents: Vec<&Value> = documents.into_iter().collect();
        let only = |kind: &'static str| {
            let is_one = |document: &&&Value| {
                let text = |key: &str| document.get(key).and_then(Value::as_str).unwrap_or_default();
                text("kind") == kind && text("apiVersion").starts_with("apiserver.config.k8s.io/")
            };
            let mut found = documents.iter().filter(is_one);
            match (found.next(), found.next()) {
                (_, Some(_)) => Err(PlaceError::Several(kind)),
                (one, None) => Ok(one.copied()),
            }
        };
        let authentication = only("AuthenticationConfiguration")?;
        let authorization = only("AuthorizationConfiguration")?;
        Ok(Self {
            authenticators: authentication
                .map(Authenticators::compile)
                .transpose()
                .map_err(PlaceError::Invalid)?,
            authorizers: authorization.map(Authorizers::compile).transpose().map_err(PlaceError::Invalid)?,
            webhooks: Webhooks::compile(documents.iter().copied()).map_err(PlaceError::Invalid)?,
            devices: Devices::read(documents.iter().copied(), DeviceFeatures::default())?,
        })
    }

    /// Every expression of them.
    #[must_use]
    pub fn expressions(&self) -> Vec<Expression<'_>> {
        let mut found = self.webhooks.expressions();
        found.extend(self.authenticators.iter().flat_map(Authenticators::expressions));
        found.extend(self.authorizers.iter().flat_map(Authorizers::expressions));
        found.extend(self.devices.expressions());
        found
    }
}
