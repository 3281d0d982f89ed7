//! One request to a resource: what it is about, who makes it, and the options of its query. HTTP makes it, the verbs of
//! the registry carry it out, and admission and authorization decide about it.

mod list_options;
mod options;

use std::sync::Arc;

pub(crate) use self::list_options::{ListOptions, VersionMatch};
pub(crate) use self::options::{
    DeleteOptions, FieldValidation, Propagation, Query, WriteOptions, check_export, unescape,
};

use crate::clock::Clock;
use crate::conversion::{Conversions, Webhook};
use crate::emptied::Emptied;
use crate::identity::Identity;
use crate::resources::{ResourceInfo, Subresource};
use crate::served::{CustomVersion, ScalePaths};
use crate::store::Key;
use crate::warning::Warnings;

/// One request, as far as admission, authorization and the verbs need to know it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub info: Arc<ResourceInfo>,
    /// The CRD's version that serves this, for custom resources.
    pub custom: Option<Arc<CustomVersion>>,
    /// Empty for cluster scope, and for lists across namespaces.
    pub namespace: String,
    pub subresource: Option<Subresource>,
    pub identity: Identity,
    pub warnings: Warnings,
    /// The empty lists and maps of the object that was sent.
    pub(crate) emptied: Emptied,
    /// The conversions that were made for the request.
    pub(crate) conversions: Conversions,
    /// The clock for times that are written into objects.
    pub clock: Clock,
    /// Whether the request that this is a part of has already passed admission.
    pub admitted: bool,
}

impl Call {
    pub(crate) fn key(&self, name: &str) -> Key {
        Key {
            resource: self.info.storage_key.as_str().into(),
            namespace: self.namespace.clone(),
            name: name.to_owned(),
        }
    }

    /// The same call to another subresource, or to the resource itself.
    pub(crate) fn on(&self, subresource: Option<Subresource>) -> Self {
        Self { subresource, ..self.clone() }
    }

    /// The same caller, about another resource.
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

    /// A part of a request that was let in.
    pub(crate) fn admitted(self) -> Self {
        Self { admitted: true, ..self }
    }

    /// The webhook by which versions of the kind differ in more than their name.
    pub(crate) fn converter(&self) -> Option<&Arc<Webhook>> {
        self.custom.as_ref()?.converter.as_ref()
    }

    /// The paths behind the scale, when the call is about one.
    pub(crate) fn scale(&self) -> Option<&ScalePaths> {
        match (self.subresource, &self.custom) {
            (Some(Subresource::Scale), Some(custom)) => custom.scale.as_ref(),
            (Some(Subresource::Scale), None) => Some(ScalePaths::builtin()),
            _ => None,
        }
    }
}
