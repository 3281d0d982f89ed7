//! Represents one request to a resource: its target, its user, and its query options. The HTTP layer builds it, the
//! registry carries it out, and admission and authorization decide about it.

mod list_options;
mod options;

use std::sync::Arc;

use admit_apimachinery::go;
use admit_apimachinery::names::path_segment;

pub(crate) use self::list_options::{ListOptions, VersionMatch};
pub(crate) use self::options::{
    DeleteOptions, FieldValidation, Propagation, Query, WriteOptions, check_export, unescape,
};

use crate::clock::Clock;
use crate::conversion::{Conversions, Webhook};
use crate::emptied::Emptied;
use crate::identity::Identity;
use crate::resources::{ResourceInfo, Scope, Subresource};
use crate::served::{CustomVersion, ScalePaths};
use crate::status::Refusal;
use crate::store::Key;
use crate::warning::Warnings;

/// One request, with what admission, authorization and the verbs need to know.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub info: Arc<ResourceInfo>,
    /// The served version of the CRD, for custom resources.
    pub custom: Option<Arc<CustomVersion>>,
    /// Empty for cluster scope, and for lists across namespaces.
    pub namespace: String,
    pub subresource: Option<Subresource>,
    pub identity: Identity,
    pub warnings: Warnings,
    /// The lists and maps that were empty in the object as sent.
    pub(crate) emptied: Emptied,
    /// The conversions that were made for the request.
    pub(crate) conversions: Conversions,
    /// The clock for timestamps in objects.
    pub clock: Clock,
    /// Whether this is part of a request that has already passed admission.
    pub admitted: bool,
}

impl Call {
    /// Checks that an object can have this name, and the namespace of the call: both come from the path of a request.
    ///
    /// # Errors
    /// 400 for a name that cannot stand in a path, and for an object in no namespace.
    pub(crate) fn check_name(&self, name: &str) -> Result<(), Refusal> {
        if self.info.scope == Scope::Namespaced && self.namespace.is_empty() {
            return Err(Refusal::bad_request("Namespace parameter required."));
        }
        match path_segment(name, false).as_slice() {
            [] => Ok(()),
            problems => {
                let problems = problems.join(";");
                Err(Refusal::bad_request(format!("Name parameter invalid: {}: {problems}", go::quote(name))))
            }
        }
    }

    pub(crate) fn key(&self, name: &str) -> Key {
        Key {
            resource: self.info.storage_key.as_str().into(),
            namespace: self.namespace.clone(),
            name: name.to_owned(),
        }
    }

    /// Returns the call for another subresource, or for the resource itself.
    pub(crate) fn on(&self, subresource: Option<Subresource>) -> Self {
        Self { subresource, ..self.clone() }
    }

    /// Returns a call of the same user for another resource.
    pub(crate) fn about(&self, info: &Arc<ResourceInfo>, namespace: &str) -> Self {
        Self {
            info: Arc::clone(info),
            custom: None,
            namespace: namespace.to_owned(),
            subresource: None,
            identity: self.identity.clone(),
            warnings: Warnings::default(),
            emptied: Emptied::default(),
            conversions: Conversions::default(),
            clock: self.clock.clone(),
            admitted: false,
        }
    }

    /// Marks the call as part of a request that has passed admission.
    pub(crate) fn admitted(self) -> Self {
        Self { admitted: true, ..self }
    }

    /// Returns the webhook that converts the kind's versions, if there is one.
    pub(crate) fn converter(&self) -> Option<&Arc<Webhook>> {
        self.custom.as_ref()?.converter.as_ref()
    }

    /// Returns the paths of the scale's fields, if the call is for the scale subresource.
    pub(crate) fn scale(&self) -> Option<&ScalePaths> {
        match (self.subresource, &self.custom) {
            (Some(Subresource::Scale), Some(custom)) => custom.scale.as_ref(),
            (Some(Subresource::Scale), None) => Some(ScalePaths::builtin()),
            _ => None,
        }
    }
}
